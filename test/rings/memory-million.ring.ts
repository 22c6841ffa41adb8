import { execFile } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { fillApart, makeBanks } from '../bench/memory/memory-million.js'
import { root } from '../repository.js'
import { lacking } from './support/clients.js'
import type { LargeBank } from './support/large-bank.js'

t.setTimeout(1_800_000)

/** What the larger bank takes on the disk, and what is written before it is there. */
const ROOM_BYTES = 3.5 * 2 ** 30
/**
 * In MiB. Of each memory the signs of its vector stay in memory, 52 MiB of a million; of the file 128 MiB may be mapped, and of
 * the garbage of lists some is collected late. 100 bytes more of each memory are too much.
 */
const MOST_GROWN = 300
const MOST_BEYOND_A_TENTH = 120

t.test('a bank of a million memories takes little more memory than one of a tenth of that, and recalls find what is in it', async t => {
  const { bavail, bsize } = statfsSync(tmpdir())
  if (bavail * bsize < ROOM_BYTES) {
    lacking(t, `${tmpdir()} has no room for a database of a million memories`)
    return
  }
  const home = await mkdtemp(join(tmpdir(), 'svc-million-'))
  t.teardown(() => rm(home, { recursive: true }))
  const path = join(home, 'memory.db')
  await makeBanks(path)
  const used = async (added: number): Promise<LargeBank> => {
    fillApart(path, added)
    // as a gateway is started: the runner's own options keep more garbage
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'dist/test/rings/support/large-bank.js'), path], { env: { ...process.env, NODE_OPTIONS: '' } })
    const bank = JSON.parse(stdout) as LargeBank
    t.comment(stdout)
    t.same(bank.found, ['The zeppelin crosses Lake Ladoga.', true], `recalls find in ${bank.memories} memories`)
    return bank
  }
  const tenth = await used(100_000)
  const whole = await used(900_000)
  t.ok(whole.memories > 1_000_000, `${whole.memories} memories`)
  const grown = (bank: LargeBank): number => Math.round(bank.most - bank.before)
  t.ok(grown(whole) < MOST_GROWN, `it grew by ${grown(whole)} MiB`)
  t.ok(grown(whole) - grown(tenth) < MOST_BEYOND_A_TENTH, `and with a tenth of them by ${grown(tenth)} MiB`)
})
