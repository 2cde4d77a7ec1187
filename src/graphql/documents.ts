import { type DocumentNode, GraphQLError, parse } from 'graphql';
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

const parseWithin = (text: string, tokens: number): DocumentNode => {
  try {
    return parse(text, { maxLexicalTokens: tokens });
  } catch (error) {
    if (error instanceof GraphQLError && error.message.includes(`${tokens} tokens`))
      throw tooExpensive(`The document has more than ${tokens} tokens.`, { limit: tokens });
    throw error;
  }
};

/** Parses within the token limit and validates with the document limits; each document once while it is remembered. */
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
        const document = parseWithin(text, limits.tokens);
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
