import { describe, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { parsedAs } from '../support/rest.ts';
import { faults, PAD_GONE, problem, restScene, THREAD_GONE, tooShort } from '../support/restScene.ts';

/** What a model’s three tools call. */
const scene = restScene();

describe.each(['/v1/tools/scratchpad', '/tools/scratchpad'])('%s', (tools) => {
  test('reads, updates and appends by thread, and makes the scratchpad', async () => {
    const thread = await scene.openThread('ada', 'nora');
    const read = async (client = scene.owner): Promise<string> =>
      String(parsedAs('ToolRead', await client.post(`${tools}/read`, { thread_id: thread })).content);
    const empty = await read();
    expect(empty).toMatch(/^\(.*update_scratchpad.*\)$/s);
    expect((await scene.owner.get(`/v1/threads/${thread}/scratchpad`)).status).toBe(200);
    expect(
      (
        await scene.owner.post(`${tools}/update`, {
          thread_id: thread,
          content: 'The plan.',
          user_id: 'x',
          mode: 1,
        })
      ).text,
    ).toBe('{"status":"success","message":"Scratchpad updated successfully."}');
    expect(await read()).toBe(
      '--- 📝 RESEARCH SCRATCHPAD ---\n\nWORKING BODY\nThe plan.\n\nAPPENDED ENTRIES\n(none)',
    );
    for (const note of ['first', 'second'])
      expect((await scene.as('ada').post(`${tools}/append`, { thread_id: thread, note })).text).toBe(
        '{"status":"success","message":"Note appended successfully."}',
      );
    expect(await read(scene.as('nora'))).toContain('[1] first\n[2] second');
    await scene.owner.post(`${tools}/update`, { thread_id: thread, content: '' });
    expect(await read()).toContain('WORKING BODY\n(empty)');
  });

  test('says 404 for a thread that is not the caller’s, and makes nothing', async () => {
    const theirs = parsedAs('Thread', await scene.stranger.post('/v1/threads', {}));
    const thread = await scene.openThread('ada', 'nora');
    for (const [client, id] of [
      [scene.owner, newId('Thread')],
      [scene.owner, theirs.id],
      [scene.owner, 'x'],
      [scene.owner, ''],
      [scene.as('scout'), thread],
    ] as const)
      for (const [tool, rest] of [
        ['read', {}],
        ['update', { content: 'x' }],
        ['append', { note: 'x' }],
      ] as const)
        expect(problem(await client.post(`${tools}/${tool}`, { thread_id: id, ...rest }))).toBe(THREAD_GONE);
    expect(problem(await scene.owner.get(`/v1/threads/${thread}/scratchpad`))).toBe(PAD_GONE);
  });

  test('refuses an empty note and what is missing', async () => {
    expect(
      faults(await scene.owner.post(`${tools}/append`, { thread_id: scene.threadId, note: '' })),
    ).toEqual([tooShort('note')]);
    expect(faults(await scene.owner.post(`${tools}/append`, { thread_id: scene.threadId }))).toMatchObject([
      { type: 'missing', loc: ['body', 'note'] },
    ]);
    expect(faults(await scene.owner.post(`${tools}/update`, { thread_id: scene.threadId }))).toMatchObject([
      { type: 'missing', loc: ['body', 'content'] },
    ]);
    expect(faults(await scene.owner.post(`${tools}/read`, {}))).toMatchObject([
      { type: 'missing', loc: ['body', 'thread_id'] },
    ]);
    const tooLong = await scene.owner.post(`${tools}/append`, {
      thread_id: scene.threadId,
      note: 'x'.repeat(65_537),
    });
    expect(problem(tooLong)).toBe('413 {"detail":"note is larger than 65536 bytes."}');
  });
});
