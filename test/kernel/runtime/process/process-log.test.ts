import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createLineSplitter } from '../../../../kernel/contract/text/line-splitter.js'
import { EngineLog, type LogPosition } from '../../../../kernel/runtime/process/process-log.js'

const MAX = 1000

async function scene (folder: string): Promise<{ log: EngineLog, path: string, write: (text: string) => Promise<void> }> {
  const path = join(folder, 'output.log')
  const log = new EngineLog(path, MAX)
  const child = await log.openForChild()
  t.teardown(() => child.close())
  return { log, path, write: async text => { await child.write(text) } }
}

async function readAll (log: EngineLog, position: LogPosition): Promise<{ text: string, position: LogPosition }> {
  let text = ''
  for (;;) {
    const { chunk, next } = await log.read(position)
    position = next
    if (chunk.length === 0) return { text, position }
    text += chunk.toString()
  }
}

const numbered = (from: number, to: number): string => Array.from({ length: to - from }, (_, i) => `line ${from + i}\n`).join('')

t.test('a log that nothing was written to is empty', async t => {
  const log = new EngineLog(join(t.testdir(), 'output.log'), MAX)
  t.same(await log.tail(5, true), { lines: [], position: { generation: 0, offset: 0 } })
  await log.bound()
  t.equal((await log.read({ generation: 0, offset: 0 })).chunk.length, 0)
})

t.test('tail takes the last lines, over the cut', async t => {
  const { log, write } = await scene(t.testdir())
  await write(numbered(0, 200))
  t.same((await log.tail(2, false)).lines, ['line 198', 'line 199'])
  await log.bound()
  t.same((await log.tail(2, false)).lines, ['line 198', 'line 199'], 'all of it is in the kept file')
  await write('line 200\nunfinished')
  t.same((await log.tail(3, false)).lines, ['line 199', 'line 200', 'unfinished'])
  t.same((await log.tail(3, true)).lines, ['line 198', 'line 199', 'line 200'], 'what will be read on is not told twice')
  const { position } = await log.tail(1, true)
  await write(' no more\n')
  t.equal((await readAll(log, position)).text, 'unfinished no more\n')
  const all = (await log.tail(100_000, false)).lines
  t.ok(all.length < 202 && all.length > 50, 'more than there is: what is kept')
  t.same(all.slice(-2), ['line 200', 'unfinished no more'])
})

t.test('the files stay bounded while the child goes on writing', async t => {
  const { log, path, write } = await scene(t.testdir())
  for (let round = 0; round < 50; round++) {
    await write(numbered(round * 20, round * 20 + 20))
    await log.bound()
    t.ok((await stat(path)).size <= MAX)
  }
  t.ok((await stat(`${path}.1`)).size <= MAX + 200)
  t.match(await readFile(path, 'utf8'), /line 999\n$/)
})

t.test('output that grows is cut at the next look, and after a silence at the fourth', async t => {
  const { log, path, write } = await scene(t.testdir())
  for (let round = 0; round < 5; round++) {
    await write(numbered(0, 200))
    await log.look()
    t.equal((await stat(path)).size, 0)
  }
  for (let look = 0; look < 20; look++) await log.look()
  await write(numbered(0, 200))
  let looks = 0
  while ((await stat(path)).size > 0 && looks < 20) {
    await log.look()
    looks++
  }
  t.ok(looks <= 4, `${looks} looks`)
})

t.test('a log that grew while no gateway ran is cut to its end', async t => {
  const { log, path, write } = await scene(t.testdir())
  await write(numbered(0, 5000))
  await log.bound()
  t.equal((await stat(path)).size, 0)
  t.equal((await stat(`${path}.1`)).size, MAX)
  t.same((await log.tail(2, false)).lines, ['line 4998', 'line 4999'])
})

t.test('a follower misses nothing over a cut', async t => {
  const { log, write } = await scene(t.testdir())
  let position: LogPosition = { generation: 0, offset: 0 }
  let seen = ''
  for (let round = 0; round < 40; round++) {
    await write(numbered(round * 30, round * 30 + 30))
    if (round % 3 !== 0) { // sometimes it lags behind a cut
      const read = await readAll(log, position)
      seen += read.text
      position = read.position
    }
    if (round % 5 === 0) await log.bound()
  }
  seen += (await readAll(log, position)).text
  t.equal(seen, numbered(0, 1200))
})

t.test('a follower that lags behind two cuts goes on with what is kept', async t => {
  const { log, write } = await scene(t.testdir())
  await write(numbered(0, 120))
  await log.bound()
  await write(numbered(120, 240))
  await log.bound()
  await write('end\n')
  const { text } = await readAll(log, { generation: 0, offset: 50 })
  const lines = createLineSplitter().push(Buffer.from(text))
  t.equal(lines[lines.length - 1], 'end')
  t.equal(lines[lines.length - 2], 'line 239')
  t.ok(text.length > 900)
})

t.test('bytes of one character across blocks', async t => {
  const folder = t.testdir()
  const log = new EngineLog(join(folder, 'output.log'))
  const file = await open(join(folder, 'output.log'), 'a')
  await file.write('x' + '漢'.repeat(60_000) + '\n')
  await file.close()
  const splitter = createLineSplitter(1_000_000)
  let position: LogPosition = { generation: 0, offset: 0 }
  const lines: string[] = []
  for (;;) {
    const { chunk, next } = await log.read(position)
    if (chunk.length === 0) break
    lines.push(...splitter.push(chunk))
    position = next
  }
  t.equal(lines.length, 1)
  t.equal(lines[0], 'x' + '漢'.repeat(60_000))
})
