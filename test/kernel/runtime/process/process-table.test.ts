import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createProcessTable, engineProcesses, type ProcessEntry, type ProcessTable } from '../../../../kernel/runtime/process/process-table.js'
import { parseStat } from '../../../../kernel/runtime/process/process-table-proc.js'
import { parsePsRow, psTable } from '../../../../kernel/runtime/process/process-table-ps.js'
import { eventually, uniqueName } from '../support.js'

t.test('a line of /proc/<pid>/stat yields the process, unless it is dead', async t => {
  const rest = '1 812 812 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000'
  const cases: readonly (readonly [string, string, ProcessEntry | null])[] = [
    ['plain', `812 (node) S ${rest}`, { pid: 812, group: 812, startId: 'boot:98765' }],
    ['a name with spaces and brackets', `812 (a) b (c) R ${rest}`, { pid: 812, group: 812, startId: 'boot:98765' }],
    ['a zombie', `812 (node) Z ${rest}`, null],
    ['a zombie whose threads still hold its ports', `812 (node) Z ${rest.replace(' 20 0 1 0 ', ' 20 0 11 0 ')}`, { pid: 812, group: 812, startId: 'boot:98765' }],
    ['dead', `812 (node) X ${rest}`, null],
    ['cut short', '812 (node) S 1', null],
    ['nothing', '', null]
  ]
  for (const [title, text, entry] of cases) t.same(parseStat(text, 'boot'), entry, title)
})

t.test('a row of ps yields the process, unless it is dead', async t => {
  const cases: readonly (readonly [string, ProcessEntry | null])[] = [
    ['  812   800 Ss   Mon Nov  3 03:58:12 2025', { pid: 812, group: 800, startId: 'Mon Nov 3 03:58:12 2025' }],
    ['  812   800 Z+   Mon Nov 21 03:58:12 2025', null],
    ['', null]
  ]
  for (const [row, entry] of cases) t.same(parsePsRow(row), entry, row)
})

for (const [name, table] of [['the table of this system', createProcessTable(process.platform)], ['ps', psTable(process.platform)]] as const) {
  t.test(`${name}: finds, tells apart, forgets`, async t => {
    const mark = uniqueName('mark')
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      detached: true, stdio: 'ignore', env: { MARK: mark }
    })
    const gone = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    const entry = await eventually('it runs', () => table.find(child.pid!))
    t.match(entry, { pid: child.pid, group: child.pid })
    t.same(await table.find(child.pid!), entry, 'the same each time')
    t.ok((await table.all()).some(other => other.pid === child.pid && other.startId === entry.startId))
    await eventually('its environment', async () => (await table.withEnv(`MARK=${mark}`)).has(child.pid!))
    t.same([...await table.withEnv(`MARK=${mark}`)], [child.pid], 'and nobody else\'s')
    t.equal((await table.withEnv(`MARK=${mark.slice(0, -1)}`)).size, 0)
    child.kill('SIGKILL')
    await gone
    t.equal(await table.find(child.pid!), null)
    t.equal((await table.withEnv(`MARK=${mark}`)).size, 0)
  })
}

t.test('the process that has a file open is found', async t => {
  const table = createProcessTable(process.platform)
  const file = join(t.testdir({ 'output.log': '' }), 'output.log')
  const handle = await open(file)
  t.teardown(() => handle.close())
  if (process.platform === 'linux') t.ok((await table.withOpen(file)).has(process.pid))
  t.equal((await table.withOpen(`${file}.other`)).size, 0)
})

t.test('which processes are the engine', async t => {
  const fake = (entries: readonly (ProcessEntry & { readonly marked?: boolean })[]): ProcessTable => ({
    find: async pid => entries.find(entry => entry.pid === pid) ?? null,
    all: async () => entries,
    withEnv: async () => new Set(entries.filter(entry => entry.marked === true).map(entry => entry.pid)),
    withOpen: async () => new Set()
  })
  const leader = { pid: 10, group: 10, startId: 'a' }
  const member = { pid: 11, group: 10, startId: 'b' }
  const escaped = { pid: 12, group: 12, startId: 'c', marked: true }
  const stranger = { pid: 13, group: 13, startId: 'd' }
  const heir = { pid: 10, group: 10, startId: 'z' }
  const pids = async (entries: readonly (ProcessEntry & { readonly marked?: boolean })[], known = true): Promise<number[]> =>
    (await engineProcesses(fake(entries), known ? leader : null, 'TOKEN=1')).map(entry => entry.pid)

  t.same(await pids([leader, member, stranger]), [10, 11], 'its group')
  t.same(await pids([leader, member, escaped]), [10, 11, 12], 'and what left the group')
  t.same(await pids([{ ...member, marked: true }, { ...member, pid: 14 }]), [11, 14], 'the rest of a group whose first is gone')
  t.same(await pids([heir, { ...member, startId: 'y' }]), [], 'not a group that got the number later')
  t.same(await pids([leader, escaped], false), [12], 'without a known leader by the token alone')
})
