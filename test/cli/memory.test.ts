import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { readLegacy } from '../../cli/commands/memory/legacy-folder.js'
import { unzip } from '../../plugins/services/memory-engine/transfer/zip.js'
import { answered } from '../answered.js'
import { fakeHindsight } from '../plugins/services/memory/fake-hindsight.js'
import { memoryHost } from '../plugins/services/memory/host.js'
import { bin } from '../program.js'
import { FakeProcess, run, type Finished } from './support.js'

t.test('the memory is switched on, filled, searched, moved and emptied at the prompt', async t => {
  const folder = t.testdir()
  const slot = 'type = "llm"\nprovider = "none"\ndevice = "cpu"\n'
  const host = await memoryHost(t, {
    files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n', 'etc/svc/slots/chat.toml': slot }
  })
  const svc = (...args: string[]): Promise<Finished> => run(['memory', ...args, '--url', host.baseUrl])

  t.match(await svc('status'), { code: 0, stdout: 'The memory is off. Switch it on: svc memory enable\n' })
  for (const args of [['banks'], ['add', 'x'], ['search', 'x'], ['list'], ['delete', 'x'], ['graph', 'status'], ['export', 'shared']]) {
    t.match(await svc(...args), { code: 1, stdout: /^$/, stderr: /the memory is off[^]*svc memory enable/ }, args.join(' '))
    t.match(await svc(...args, '--json'), { code: 1, stdout: /^$/, stderr: /memory\.unavailable[^]*svc memory enable|svc memory enable[^]*memory\.unavailable/ }, `${args.join(' ')} --json`)
  }
  const on = await svc('enable')
  t.match(on, { code: 0, stdout: /memory +on\nengine +embedded\nwire +1\.1\.0\nbanks +0\n/ }, on.stderr)
  t.match(JSON.parse((await svc('status', '--json')).stdout), { enabled: true, engine: 'embedded', reachable: true })

  const added = await svc('add', 'The printer is on the second floor.', '--tag', 'office', '--id', 'printer')
  t.match(added, { code: 0, stdout: 'Remembered as printer.\n' }, added.stderr)
  const { id } = JSON.parse((await svc('add', 'Deploys happen on Tuesdays.', '-d', 'project:web', '--json')).stdout) as { id: string }
  t.match(await svc('search', 'where is the printer'), { code: 0, stdout: /^The printer is on the second floor\.\n  \d\.\d\d  shared  anonymous  2\S+  printer\n$/ })
  const narrow = await new FakeProcess({ tty: true, columns: 50, env: { NO_COLOR: '1' } }).run('memory', 'search', 'where is the printer', '--url', host.baseUrl)
  t.match(narrow.stdout, /\.\n  \d\.\d\d  shared  anonymous\n  2\S+  printer\n$/, 'folded below its beginning at a terminal')
  t.match(await svc('search', 'deploys', '--dataset', 'project:web'), { stdout: /^Deploys happen on Tuesdays\.\n/, stderr: 'Searched by words alone, not by meaning: `svc memory status` tells why.\n' })
  t.match(await svc('search', 'the', '--tag', 'office'), { stdout: /^The printer[^]*  printer\n$/ })
  t.match(await svc('search', 'printer', '--tag', 'home'), { stdout: /^$/, stderr: /^Nothing is found\.\n/ })
  t.match(await svc('list'), { code: 0, stdout: /^The printer[^]*  shared  anonymous  2\S+  printer\n$/ })
  t.match(await svc('banks'), { code: 0, stdout: /^BANK +MEMORIES +LAST WRITE\n(?:project__web|shared) +1 +/ })

  await t.test('a search and a list are narrowed by each of their flags', async t => {
    const [wire, of] = ['/api/memory/hindsight/v1/default/banks/project__sea/memories', ['-d', 'project:sea']]
    const items = ['2020-05-01', '2022-05-01', '2024-05-01'].map((timestamp, i) => ({
      content: `The sea is ${['cold', 'deep', 'wide'][i]}.`, document_id: `sea-${i}`, timestamp, tags: [i === 1 ? 'depth' : 'other']
    }))
    await host.call('POST', wire, { items })
    const shown = ({ code, stdout, stderr }: Finished): string[] => {
      if (code !== 0) throw new Error(stderr)
      return [...stdout.matchAll(/sea-\d$/gm)].map(([id]) => id).sort()
    }
    t.same(shown(await svc('search', 'sea', ...of)), ['sea-0', 'sea-1', 'sea-2'])
    t.equal(shown(await svc('search', 'sea', ...of, '-n', '1')).length, 1)
    t.same(shown(await svc('search', 'sea', ...of, '--after', '2022-01-01')), ['sea-1', 'sea-2'])
    t.same(shown(await svc('search', 'sea', ...of, '--before', '2022-06-01')), ['sea-0', 'sea-1'])
    t.same(shown(await svc('search', 'sea', ...of, '--after', '2022-01-01', '--before', '2022-06-01')), ['sea-1'])
    t.same(shown(await svc('search', 'sea', ...of, '--tag', 'depth')), ['sea-1'])
    t.same(shown(await svc('search', 'sea', ...of, '-t', 'depth', 'other')), ['sea-0', 'sea-1', 'sea-2'], 'one of several tags')
    const first = await svc('list', ...of, '-n', '2')
    const [, cursor = ''] = /^There are more: --cursor (\S+)\n$/.exec(first.stderr) ?? []
    const last = await svc('list', ...of, '-n', '2', '--cursor', cursor)
    t.same([shown(first).length, shown(last).length, last.stderr], [2, 1, ''])
    t.same([...shown(first), ...shown(last)].sort(), ['sea-0', 'sea-1', 'sea-2'])
    t.match(await svc('list', ...of, '--cursor', 'elsewhere@1'), { code: 1, stderr: /the cursor does not belong to this list/ })
    for (const [verb, ...more] of [['search', 'x'], ['list']] as const) {
      for (const count of ['0', '201', 'x']) t.match(await svc(verb, ...more, '-n', count), { code: 2, stderr: /--limit/ }, `${verb} -n ${count}`)
    }
    t.match(await svc('search', 'sea', '--after', 'soon'), { code: 1, stderr: /after/ })
    t.match(await svc('rm', 'sea-0', 'sea-1', 'none', ...of, '-y'), { code: 0, stdout: '2 memories are deleted.\n' })
    t.same(shown(await svc('list', ...of)), ['sea-2'])
  })

  await t.test('an export goes to a file in the working folder that is named after the bank, with its audit log or without', async t => {
    const cwd = t.testdir()
    await host.call('POST', '/api/memory/hindsight/v1/default/banks/the%20log/memories', { items: [{ content: 'It is written down.' }] })
    const inFolder = (...args: string[]): Promise<Finished> => run(['memory', ...args, '--url', host.baseUrl], { cwd })
    const history = async (file: string): Promise<boolean> => unzip(await readFile(join(cwd, file)), 1e6).has('history/audit_log.json')
    t.match(await inFolder('export', 'the log'), { code: 0, stdout: new RegExp(`^the log is in ${cwd}/the_log\\.zip, \\d+ bytes\\.\n$`) })
    t.match(await inFolder('export', 'the log', '-o', 'short.zip', '--no-history'), { code: 0 })
    t.same((await readdir(cwd)).sort(), ['short.zip', 'the_log.zip'])
    t.same([await history('the_log.zip'), await history('short.zip')], [true, false])
    t.match(await inFolder('import', 'project__log', 'short.zip'), { code: 0, stdout: 'short.zip is in project__log.\n' })
  })

  await t.test('agents that have told of themselves are listed, and no other note', async () => {
    const agent = (...words: string[]): Promise<Finished> => run(['agent', ...words, '--url', host.baseUrl])
    t.match(await agent('peers'), { code: 0, stderr: /No agent has announced itself/ })
    await svc('add', 'scout 1.0 looks after the house.', '-d', 'agents', '--tag', 'agent-identity', '--id', 'agent-identity-scout')
    await svc('add', 'Agents meet on Mondays.', '-d', 'agents')
    const { stdout } = await agent('peers')
    t.match(stdout, /^ID +AGENT +SINCE +SAYS\nagent-identity-scout +anonymous +2\S+ +scout 1\.0 looks after the house\.\n$/)
    t.match(JSON.parse((await agent('peers', '--json')).stdout), [{ id: 'agent-identity-scout', dataset: 'agents' }])
  })

  await t.test('a bank goes into a file and out of it', async t => {
    const file = join(folder, 'web.zip')
    const out = await svc('export', 'project__web', '-o', file)
    t.match(out, { code: 0, stdout: /^project__web is in .*web\.zip, \d+ bytes\.\n$/ }, out.stderr)
    t.equal((await readFile(file)).subarray(0, 2).toString(), 'PK')
    t.strictSame(await readdir(folder), ['web.zip'], 'and nothing else is left')
    const back = await svc('import', 'project__copy', file)
    t.match(back, { code: 0, stdout: /web\.zip is in project__copy\.\n$/ }, back.stderr)
    t.match(await svc('list', '--dataset', 'project:copy'), { stdout: /^Deploys happen on Tuesdays\.\n/ })
    t.match(await svc('import', 'project__copy', file), {
      code: 1, stderr: /^Error: bank 'project__copy' already exists\n`--on-conflict skip`, `replace` or `new-id` imports the file into it\.\n$/
    })
    for (const rule of ['skip', 'replace', 'new-id']) t.match(await svc('import', 'project__copy', file, '--on-conflict', rule), { code: 0 }, rule)
    t.equal((await svc('list', '--dataset', 'project:copy')).stdout.match(/Deploys happen on Tuesdays/g)?.length, 2, 'new-id leaves both')
    const names = '/api/memory/hindsight/v1/default/banks/project__web/aliases'
    for (const alias of ['website', 'pages']) await host.call('POST', names, { alias })
    await svc('export', 'project__web', '-o', file)
    await host.call('DELETE', `${names}/pages`)
    const named = await svc('import', 'project__named', file, '--aliases')
    t.match(named, { code: 0, stderr: /^1 other name was left out: it is in use, or not allowed\.\n$/ }, named.stderr)
    t.match((await host.call('GET', names.replace('__web', '__named'))).json, { aliases: [{ alias: 'pages' }] })
    t.match(await svc('import', 'project__copy', join(folder, 'none.zip')), { code: 1, stderr: /cannot be read/ })
    t.match(await svc('export', 'never__made'), { code: 1, stderr: /^Error: Bank 'never__made' not found\n/ }, 'in words and no JSON')
  })

  await t.test('the folder of a former engine is planned first, and read once', async t => {
    const legacy = join(folder, 'cognee')
    await mkdir(join(legacy, 'data'), { recursive: true })
    await writeFile(join(legacy, 'data', 'a.txt'), 'Alice likes tea.')
    await writeFile(join(legacy, 'b.jsonl'), '{"text":"Bob likes coffee."}\n{"content":"Carol likes water."}\n')
    await writeFile(join(legacy, 'c.json'), '{')
    await writeFile(join(legacy, 'd.db'), 'SQLite')
    const plan = await svc('migrate', '--legacy-dir', legacy)
    t.match(plan, { code: 0, stdout: '3 memories in 4 files would go to shared. Nothing was changed; --apply imports them.\n', stderr: /c\.json: is no JSON[^]*d\.db: is no text/ })
    t.notMatch(await svc('list'), { stdout: /Bob/ })
    for (const _ of [1, 2]) t.match(await svc('migrate', '--legacy-dir', legacy, '--apply'), { code: 0, stdout: '3 memories of 4 files are in shared.\n' })
    const { items } = JSON.parse((await svc('list', '--json')).stdout) as { items: Array<{ text: string }> }
    t.equal(items.filter(({ text }) => /likes/.test(text)).length, 3, 'nothing twice')
    await writeFile(join(legacy, 'e.jsonl'), `${JSON.stringify('x'.repeat(1_000_001))}\n"Dave likes milk."\n`)
    const longer = await svc('migrate', '--legacy-dir', legacy)
    t.match(longer, { stdout: /^4 memories in 5 files/, stderr: /e\.jsonl: 1 of its 2 texts are longer than 1000000 characters/ }, 'what is left out is told')
    const [all, part] = [await readLegacy(legacy), await readLegacy(legacy, 3)]
    t.same(part.notes, all.notes.filter(({ source }) => source === 'b.jsonl'))
    t.match(part, { files: 3, skipped: [...all.skipped.slice(0, 2), {
      file: join('data', 'a.txt'), reason: 'is skipped with all files after it (2 with this one): at most 3 are read. Import them from a folder of their own'
    }] })
    t.equal(part.skipped.length, 3)
    t.match(await svc('migrate', '--legacy-dir', join(legacy, 'd.db')), { code: 1, stderr: /d\.db cannot be read/ })
    t.match(await svc('migrate', '--legacy-dir', join(folder, 'none')), { code: 1, stderr: /nothing to import/ })
    t.match(await svc('migrate'), { code: 1, stderr: new RegExp(`nothing to import in ${host.home}/var/lib/svc/memory/cognee`) }, 'of the gateway that is named')
    t.match(await svc('migrate', '--legacy-dir', join(folder, 'none'), '--json'), { code: 1, stdout: /"files": 0/ }, 'for a program, too')
  })

  t.match(await svc('graph', 'status'), { code: 0, stdout: /extraction +off\nslot +utility, which is not an enabled llm slot: there are chat\n[^]*counted +(\d+) of \1 banks\n/ })
  t.match(await svc('graph', 'enable', '--slot', 'none'), { code: 1, stderr: /not an enabled llm slot/ })
  t.match(await svc('graph', 'enable', '--slot', 'chat'), { code: 0, stdout: /extraction +on\nslot +chat\n/ })
  t.match(JSON.parse((await svc('graph', 'disable', '--json')).stdout), { enabled: false, extraction_slot: 'chat' })

  await t.test('a migration that is killed is brought to its end by the next one, and makes nothing twice', async t => {
    const legacy = join(folder, 'large')
    await mkdir(legacy)
    await writeFile(join(legacy, 'all.jsonl'), Array.from({ length: 60 }, (_, i) => `"Number ${i} of the former engine."\n`).join(''))
    const kept = async (): Promise<number> => (await host.call('GET', '/api/memory/banks/project__old/memories?limit=1')).json.total ?? 0
    const args = [bin, 'memory', 'migrate', '--legacy-dir', legacy, '--dataset', 'project:old', '--apply', '--url', host.baseUrl]
    const isAdding = answered('POST /api/memory/add')
    const killed = spawn(process.execPath, args, { stdio: 'ignore' })
    const gone = once(killed, 'exit')
    await Promise.race([isAdding, gone])
    killed.kill('SIGKILL')
    await gone
    const before = await kept()
    t.ok(before > 0 && before < 60, `${before} were kept`)
    t.match(await svc('migrate', '--legacy-dir', legacy, '--dataset', 'project:old', '--apply'), { code: 0, stdout: '60 memories of 1 files are in project:old.\n' })
    t.equal(await kept(), 60)
    t.match(await svc('migrate', '--legacy-dir', legacy, '--dataset', 'project:old', '--dry-run', '--json'), { stdout: /"memories": 60,[^]*"applied": false/ })
  })

  await t.test('each verb answers a program with one JSON document and nothing else', async t => {
    const file = join(folder, 'json.zip')
    const verbs: ReadonlyArray<readonly [args: readonly string[], answer: object]> = [
      [['add', 'Eve likes milk.', '-d', 'project:json', '--id', 'eve'], { id: 'eve' }],
      [['search', 'who likes milk', '-d', 'project:json'], { items: [{ id: 'eve', text: 'Eve likes milk.', score: Number }], ran_on: ['text'] }],
      [['list', '-d', 'project:json'], { items: [{ id: 'eve', dataset: 'project:json' }] }],
      [['banks'], { banks: Array, total: Number }],
      [['export', 'project__json', '-o', file], { bank: 'project__json', file, bytes: Number }],
      [['import', 'project__second', file], { status: 'completed' }],
      [['delete', 'eve', '-d', 'project:json', '-y'], { deleted: 1 }],
      [['migrate', '--legacy-dir', join(folder, 'cognee'), '--dataset', 'project:json', '--apply'], { memories: 4, applied: true }],
      [['status'], { enabled: true, engine: 'embedded', reachable: true }],
      [['graph', 'status'], { enabled: false, extraction_slot: 'chat' }],
      [['graph', 'enable', '--slot', 'chat'], { enabled: true, extraction_slot: 'chat' }],
      [['graph', 'disable'], { enabled: false }],
      [['disable'], { enabled: false }],
      [['enable'], { enabled: true, engine: 'embedded' }]
    ]
    for (const [args, answer] of verbs) {
      const { code, stdout, stderr } = await svc(...args, '--json')
      t.match({ code, stderr, json: JSON.parse(stdout) as unknown }, { code: 0, stderr: /^$/, json: answer }, args.join(' '))
    }
    t.match(await svc('delete', 'eve', '-d', 'project:json', '-y', '--json'), { code: 1, stdout: /"deleted": 0/ })
  })

  t.match(await svc('delete', id, '-d', 'project:web', '-y'), { code: 0, stdout: 'One memory is deleted.\n' })
  t.match(await svc('delete', id, '-d', 'project:web'), { code: 1, stderr: /no such memory/ })
  t.match(await svc('list', '--dataset', 'project:web'), { code: 0, stdout: /^$/, stderr: 'There are no memories here.\n' })
  t.match(await svc('disable'), { code: 0, stdout: /is off/ })
})

t.test('a Hindsight server is taken by its address and searched, and one that does not answer is told', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n' } })
  const svc = (...args: string[]): Promise<Finished> => run(['memory', ...args, '--url', host.baseUrl])
  t.match(await svc('enable', '--server', fake.url), { code: 0, stdout: /memory +on\nengine +hindsight\nwire +1\.1\.0\n/ })
  await svc('add', 'The printer is on the second floor.', '--id', 'printer')
  t.match(await svc('search', 'where is the printer'), { code: 0, stdout: /^The printer is on the second floor\.\n  \d\.\d\d  shared  anonymous  2\S+  printer\n$/ })
  t.match(JSON.parse((await svc('search', 'printer', '--json')).stdout), { items: [{ id: 'printer', text: /printer/, score: Number }], ran_on: ['hindsight'] })
  t.equal((await svc('search', 'printer')).stderr, '', 'of a server it is not known')
  t.match(await svc('search', 'nothing', '--after', '2026-01-01', '--tag', 'x'), { code: 0, stdout: /^$/, stderr: /Nothing is found/ })
  const answers = (path: string, status: number, value: object): void => {
    fake.instead.set(`/v1/default/banks/project__web/${path}`, (_request, response) => { response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value)) })
  }
  answers('transfer/import', 202, { operation_id: 'op-7', status: 'pending' })
  answers('operations/op-7', 200, { operation_id: 'op-7', status: 'completed', result_metadata: { bank_id: 'project__web' } })
  const file = join(t.testdir({ 'web.zip': 'PK' }), 'web.zip')
  t.match(await svc('import', 'project__web', file, '--aliases'), {
    code: 0, stdout: /web\.zip is in project__web\.\n$/, stderr: 'This memory engine imports no other names of a bank.\n'
  })
  t.match(await svc('enable', '--engine', 'embedded', '--server', fake.url), { code: 2, stderr: /--server needs/ })
  fake.key = 'right'
  t.match(await svc('status'), { code: 1, stdout: /memory +on, but not answering/, stderr: /put it into api\.env as HINDSIGHT_API_TENANT_API_KEY/ })
})
