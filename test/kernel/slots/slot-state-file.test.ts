import { readFile, writeFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Logger } from '../../../kernel/contract/index.js'
import { SlotStateFiles, type SlotStateFile } from '../../../kernel/slots/life/kept/slot-state-file.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

t.test('state files are written at most once a second and flushed at the end; a failed write harms nothing', async t => {
  const root = t.testdir()
  const clock = new FakeClock()
  const warnings: object[] = []
  const log = { warn: (fields: object) => { warnings.push(fields) } } as unknown as Logger
  const files = new SlotStateFiles(root, clock, log)
  const state = (generation: number): SlotStateFile => ({
    name: 'a', state: 'ready', model_id: 'm', port: 8081, updated_at: 1, last_used_at: 2.5, generation, message: '', extra: { adopted: true }
  })
  const onDisk = async (): Promise<{ generation: number } | null> =>
    JSON.parse(await readFile(join(root, 'a/state.json'), 'utf8').catch(() => 'null')) as { generation: number } | null
  t.equal(await files.read('a'), null, 'none')
  t.strictSame(warnings, [], 'which is no reason to complain')
  files.note('a', state(1))
  files.note('a', state(2))
  t.equal(await onDisk(), null, 'soon, not now')
  await clock.advance(1_000)
  await files.flush()
  t.equal((await onDisk())?.generation, 2, 'the last one counts')
  files.note('a', state(3))
  files.note('a', state(4))
  t.equal(clock.pending, 1, 'one timer, however often it changes')
  await files.flush()
  t.equal((await onDisk())?.generation, 4)
  t.equal(clock.pending, 0)
  t.strictSame(await new SlotStateFiles(root, clock, log).read('a'), state(4), 'another run reads it back')

  for (const text of ['', '{', '[]', '{"name":"a","state":"flying","updated_at":1}']) {
    await writeFile(join(root, 'a/state.json'), text)
    t.equal(await files.read('a'), null, `ignored: ${text}`)
  }
  t.equal(warnings.length, 4, 'and told')
  await writeFile(join(root, 'a/state.json'), '{"name":"a","state":"offline","updated_at":1,"of_a_newer_release":true}')
  t.match(await files.read('a'), { state: 'offline', generation: 0, extra: {} })

  files.note('a', state(5))
  await files.written('a')
  t.equal((await onDisk())?.generation, 5, 'at once where something was promised')
  t.equal(clock.pending, 0)
  await files.written('a')
  files.note('a', state(6))
  await files.remove('a')
  await clock.advance(2_000)
  await files.flush()
  t.equal(await onDisk(), null, 'a removed one does not come back')
  await writeFile(join(root, 'file'), '')
  await mkdir(join(root, 'other'))
  files.note('file', state(1))
  await files.flush()
  t.equal(warnings.length, 5, 'a write that fails is told and harms nothing')
})
