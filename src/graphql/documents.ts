import { type DocumentNode, GraphQLError, Lexer, parse, Source, TokenKind } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { documentLimits, type OperationLimits, tooExpensive } from './limits.ts';

/** A parsed document takes up to some three hundred times its text: this much text bounds it at a few hundred MB. */
const CACHED_CHARACTERS = 1024 * 1024;
/** Longer ones carry their values in the text and do not come again. */
const CACHEABLE_CHARACTERS = 32 * 1024;

/** Documents as text, the least recently used leave first. */
export const createDocumentCache = (capacity = CACHED_CHARACTERS, longest = CACHEABLE_CHARACTERS) => {
  const documents = new Map<string, DocumentNode>();
  let characters = 0;
  return {
    get size() {
      return documents.size;
    },
    get(text: string): DocumentNode | undefined {
      const document = documents.get(text);
      if (document === undefined) return undefined;
      documents.delete(text);
      documents.set(text, document);
      return document;
    },
    set(text: string, document: DocumentNode): void {
      if (text.length > longest || documents.has(text)) return;
      documents.set(text, document);
      characters += text.length;
      for (const [oldest] of documents) {
        if (characters <= capacity) break;
        documents.delete(oldest);
        characters -= oldest.length;
      }
    },
  };
};

const parseWithin = (text: string, { tokens, nesting }: OperationLimits): DocumentNode => {
  if (isNestedDeeper(text, nesting, tokens))
    throw tooExpensive(`The document is nested deeper than ${nesting}.`, { limit: nesting });
  try {
    return parse(text, { maxLexicalTokens: tokens });
  } catch (error) {
    if (error instanceof GraphQLError && error.message.includes(`${tokens} tokens`))
      throw tooExpensive(`The document has more than ${tokens} tokens.`, { limit: tokens });
    throw error;
  }
};

const OPENING = new Set<string>([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSING = new Set<string>([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Whether braces, brackets and parentheses stand deeper in each other than `limit`: the parser, and whoever goes over what
 * it has made, goes one call deeper for each. What is no token, or lies beyond `tokens`, is the parser's to refuse.
 */
const isNestedDeeper = (text: string, limit: number, tokens: number): boolean => {
  if (!hasMoreOpenings(text, limit)) return false;
  const lexer = new Lexer(new Source(text));
  let depth = 0;
  try {
    for (let count = 0; count < tokens && depth <= limit; count += 1) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) break;
      if (OPENING.has(kind)) depth += 1;
      else if (CLOSING.has(kind)) depth -= 1;
    }
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
  }
  return depth > limit;
};

/** Few documents have: the others are not read twice. */
const hasMoreOpenings = (text: string, limit: number): boolean => {
  let count = 0;
  for (let at = 0; at < text.length && count <= limit; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === 0x7b || unit === 0x5b || unit === 0x28) count += 1;
  }
  return count > limit;
};

/** Parses within the limits of tokens and nesting, and validates with the document limits; each document once while it is remembered. */
export const useDocuments = (limits: OperationLimits): Plugin => {
  const cache = createDocumentCache();
  const verdicts = new WeakMap<DocumentNode, readonly Error[]>();
  const rule = documentLimits(limits);
  return {
    onParse({ setParseFn }) {
      setParseFn((source: unknown) => {
        const text = String(source);
        const known = cache.get(text);
        if (known !== undefined) return known;
        const document = parseWithin(text, limits);
        cache.set(text, document);
        return document;
      });
    },
    onValidate({ params, addValidationRule, setResult }) {
      const document: DocumentNode = params.documentAST;
      const verdict = verdicts.get(document);
      if (verdict !== undefined) {
        setResult(verdict);
        return undefined;
      }
      addValidationRule(rule);
      return ({ result }) => {
        verdicts.set(document, result);
      };
    },
  };
};
