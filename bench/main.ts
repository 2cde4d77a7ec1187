import { append } from './append.ts';
import { deletion } from './deletion.ts';
import { entries } from './entries.ts';
import { explain } from './explain.ts';
import { idle } from './idle.ts';
import { inbox } from './inbox.ts';
import { live } from './live.ts';
import { memory } from './memory.ts';
import { pad } from './pad.ts';
import { padLive } from './padLive.ts';
import { page } from './page.ts';
import { recall } from './recall.ts';
import type { Bench } from './support/bench.ts';
import { tools } from './tools.ts';

const BENCHES: Readonly<Record<string, Bench>> = {
  append,
  deletion,
  entries,
  pad,
  padLive,
  page,
  live,
  idle,
  inbox,
  tools,
  explain,
  memory,
  recall,
};

const args = process.argv.slice(2);
const smoke = args.includes('--smoke');
const names = args.filter((name) => !name.startsWith('-'));
const unknown = names.filter((name) => !(name in BENCHES));
if (unknown.length > 0 || names.length === 0) {
  console.error(`npm run bench -- NAME … [--smoke]; there are ${Object.keys(BENCHES).join(', ')}.`);
  process.exit(1);
}
// What was started ends with this process, also when it is interrupted.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
let met = true;
for (const name of names) {
  console.log(`\n=== ${name}${smoke ? ' (only to show that it runs)' : ''}`);
  met = ((await BENCHES[name]?.({ smoke })) ?? false) && met;
}
process.exit(met || smoke ? 0 : 1);
