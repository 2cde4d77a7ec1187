import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { inventory, ROOT } from '../../scripts/support.mjs';

test('what a step has made is known again, whatever another step has made inside of it since', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tp-made-'));
  try {
    const path = relative(ROOT, folder);
    const taken = (): string => inventory(path, [`${path}/pages`]);
    writeFileSync(join(folder, 'app.js'), 'one');
    writeFileSync(join(folder, 'zebra.js'), 'two');
    const before = taken();
    mkdirSync(join(folder, 'pages'));
    writeFileSync(join(folder, 'pages', 'index.html'), 'three');
    expect(taken()).toBe(before);
    writeFileSync(join(folder, 'app.js'), 'changed');
    expect(taken()).not.toBe(before);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
