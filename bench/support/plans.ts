/** A node of a plan, as far as it is looked at. Source: Postgres, EXPLAIN (FORMAT JSON). */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** One statement as it was run, also inside functions. */
export interface ExplainedStatement {
  readonly text: string;
  readonly milliseconds: number;
  readonly plan: PlanNode;
}

const START = /duration: ([\d.]+) ms {2}plan:$/;

/** Reads what auto_explain wrote to the database's log, in JSON. */
export async function* readPlans(log: AsyncIterable<string>): AsyncGenerator<ExplainedStatement> {
  let milliseconds: number | undefined;
  let json: string[] = [];
  const read = (): ExplainedStatement[] => {
    if (milliseconds === undefined) return [];
    const entry = JSON.parse(json.join('\n')) as { 'Query Text': string; Plan: PlanNode };
    return [{ text: entry['Query Text'], milliseconds, plan: entry.Plan }];
  };
  for await (const line of log) {
    if (milliseconds !== undefined && line.startsWith('\t')) {
      json.push(line);
      continue;
    }
    yield* read();
    const start = START.exec(line)?.[1];
    milliseconds = start === undefined ? undefined : Number(start);
    json = [];
  }
  yield* read();
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const rowsOf = (node: PlanNode): number => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1);

/** Rows that one step may read before somebody should look at it. */
const MANY = 2_000;

/** What in a plan would grow with a table; nothing, if all is well. */
export const faultsOf = ({ plan }: ExplainedStatement, bigTables: ReadonlySet<string>): string[] =>
  nodesOf(plan).flatMap((node) => {
    const table = node['Relation Name'] ?? '';
    const removed = (node['Rows Removed by Filter'] ?? 0) * (node['Actual Loops'] ?? 1);
    const isScan = node['Node Type'] === 'Seq Scan' && bigTables.has(table);
    return [
      ...(isScan ? [`Seq Scan on ${table}`] : []),
      ...(removed > MANY ? [`${removed} rows read and left out of ${table || node['Node Type']}`] : []),
      ...(rowsOf(node) > MANY ? [`${rowsOf(node)} rows of ${table || node['Node Type']}`] : []),
    ];
  });

/** The plan's steps, one a line. */
export const shapeOf = (node: PlanNode, depth = 0): string =>
  [
    `${'  '.repeat(depth)}${node['Node Type']}${node['Index Name'] ? ` using ${node['Index Name']}` : ''}${
      node['Relation Name'] ? ` on ${node['Relation Name']}` : ''
    } (rows ${Math.round(rowsOf(node))}, loops ${node['Actual Loops'] ?? 0}, blocks ${blocksOf(node)})`,
    ...(node.Plans ?? []).map((child) => shapeOf(child, depth + 1)),
  ].join('\n');

export const blocksOf = (node: PlanNode): number =>
  (node['Shared Hit Blocks'] ?? 0) + (node['Shared Read Blocks'] ?? 0);
