/** What a person watches while it goes on: a bar on a terminal, now and then a line elsewhere. */
export interface Progress {
  advance(done: number): void;
  /** Says something above the bar. */
  say(line: string): void;
  end(): void;
}

const WIDTH = 30;
const EVERY_MS = 100;

export const createProgress = (label: string, total: number, output: NodeJS.WriteStream): Progress => {
  const isBar = output.isTTY === true;
  const startedAt = performance.now();
  let done = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;
  let saidTenths = 0;

  const rate = (): string => {
    const seconds = (performance.now() - startedAt) / 1_000;
    return seconds < 0.5 ? '' : `, ${Math.round(done / seconds)}/s`;
  };
  const draw = (): void => {
    const filled = total === 0 ? WIDTH : Math.round((WIDTH * done) / total);
    const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
    output.write(`\r\u001b[K${label} ${bar} ${done}/${total}${rate()}`);
  };

  return {
    advance(count) {
      done = count;
      if (isBar) {
        const now = performance.now();
        if (now - drawnAt < EVERY_MS && done < total) return;
        drawnAt = now;
        draw();
        return;
      }
      const tenths = total === 0 ? 10 : Math.floor((10 * done) / total);
      if (tenths === saidTenths) return;
      saidTenths = tenths;
      output.write(`${label} ${done}/${total}${rate()}\n`);
    },
    say(line) {
      if (isBar) output.write('\r\u001b[K');
      console.log(line);
      if (isBar) draw();
    },
    end() {
      if (isBar) output.write('\n');
    },
  };
};
