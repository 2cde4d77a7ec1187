import {
  type ASTVisitor,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import { OUTGOING_LIMITS } from '../http/outgoing.ts';

/** What one operation may ask for, checked before anything of it runs, alike on every transport. */
export interface OperationLimits {
  readonly tokens: number;
  /** Of braces, brackets and parentheses in each other: what is read by going deeper must not go without end. */
  readonly nesting: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** See `costOf`. */
  readonly cost: number;
  /** Bytes of one answer, or of one payload of a subscription. */
  readonly answer: number;
}

export const OPERATION_LIMITS: OperationLimits = {
  tokens: 5_000,
  nesting: 200,
  depth: 12,
  aliases: 100,
  directives: 50,
  cost: 50_000,
  answer: OUTGOING_LIMITS.answer,
};

export const tooExpensive = (message: string, facts: Readonly<Record<string, number>>): GraphQLError =>
  new GraphQLError(message, { extensions: { ...facts, code: 'QUERY_TOO_EXPENSIVE' } });

interface Measure {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
}

const NOTHING: Measure = { depth: 0, aliases: 0, directives: 0 };

const both = (a: Measure, b: Measure): Measure => ({
  depth: Math.max(a.depth, b.depth),
  aliases: a.aliases + b.aliases,
  directives: a.directives + b.directives,
});

/**
 * A validation rule: depth (introspection apart, whose depth GraphQL's own rules bound), aliases and directives of
 * each operation with its fragments in place. Each fragment is measured once, so a document that unfolds to
 * billions of fields is refused as fast as it is read.
 */
export const documentLimits =
  (limits: OperationLimits) =>
  (context: ValidationContext): ASTVisitor => {
    const measured = new Map<string, Measure>();

    const measureFragment = (name: string): Measure => {
      const known = measured.get(name);
      if (known) return known;
      // A cycle, which another rule reports, ends here.
      measured.set(name, NOTHING);
      const fragment = context.getFragment(name);
      const measure = fragment ? measureSelections(fragment.selectionSet) : NOTHING;
      measured.set(name, measure);
      return measure;
    };

    const measureNode = (node: SelectionNode): Measure => {
      const own = { depth: 0, aliases: 0, directives: node.directives?.length ?? 0 };
      if (node.kind === Kind.FRAGMENT_SPREAD) return both(own, measureFragment(node.name.value));
      if (node.kind === Kind.INLINE_FRAGMENT) return both(own, measureSelections(node.selectionSet));
      const isIntrospection = node.name.value.startsWith('__');
      const below = node.selectionSet ? measureSelections(node.selectionSet) : NOTHING;
      return {
        depth: isIntrospection ? 0 : 1 + below.depth,
        aliases: (node.alias ? 1 : 0) + below.aliases,
        directives: own.directives + below.directives,
      };
    };

    const measureSelections = ({ selections }: SelectionSetNode): Measure =>
      selections.map(measureNode).reduce(both, NOTHING);

    const check = (operation: OperationDefinitionNode): void => {
      const measure = measureSelections(operation.selectionSet);
      const all = { ...measure, directives: measure.directives + (operation.directives?.length ?? 0) };
      for (const name of ['depth', 'aliases', 'directives'] as const)
        if (all[name] > limits[name])
          context.reportError(
            tooExpensive(`The operation has ${what(name, all[name])}; at most ${limits[name]} are allowed.`, {
              [name]: all[name],
              limit: limits[name],
            }),
          );
    };

    return {
      OperationDefinition(operation) {
        check(operation);
        return false;
      },
    };
  };

const what = (name: keyof Measure, count: number): string =>
  name === 'depth' ? `depth ${count}` : `${count} ${name}`;
