import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { textWidth } from '../../cli/terminal/text-width.js'
import { CPU_ONLY, stack, stacksApi } from '../plugins/api/stacks/host.js'
import { fakeApi, FakeProcess, run } from './support.js'

t.test('a stack from a snapshot to its end, and over to another host', async t => {
  const gateway = await stacksApi(t)
  const folder = t.testdir()
  const svc = (...args: readonly string[]) => run(['stack', ...args, '--url', gateway.baseUrl], { cwd: folder })
  t.equal((await gateway.call('POST', '/api/stacks', { slug: 'mine', stack })).status, 201)
  const list = await svc('list')
  t.match(list.stdout, /^SLUG +STATE .*SLOTS/)
  t.match(list.stdout, /saber +- +yes +agent, utility/)
  for (const line of list.stdout.trimEnd().split('\n')) t.ok(textWidth(line) <= 80, line)
  t.match(JSON.parse((await svc('list', '--json')).stdout), { active: null })
  t.match((await svc('show', 'mine')).stdout, /slug +mine\nname +Mine\n\nSLOT +MODEL +DEVICE +PROFILE\nagent +coder +gpu-vulkan +mine\n\+ embed +nomic +cpu +-\nhelper +small/)
  t.match(await svc('show', 'none'), { code: 1, stderr: /stacks\.not_found/ })

  t.match(await svc('snapshot', 'before', '--name', 'Before'), { code: 0, stdout: 'Stack before has agent, old.\n' })
  t.match(await svc('snapshot', 'before'), { code: 1, stderr: /stacks\.exists/ })
  t.match(await svc('snapshot', 'No Slug'), { code: 2 })

  t.match(await svc('apply', 'mine', '--dry-run'), { code: 0, stdout: / {2}change slot agent: model chatty -> coder.*\n {2}create slot helper with model small\n/ })
  t.match(JSON.parse((await svc('apply', 'mine', '--dry-run', '--json')).stdout), { dry_run: true, creates: ['helper', 'embed'] })
  t.notOk(gateway.slots.names().includes('helper'))
  const applied = await svc('apply', 'mine', '--yes')
  t.equal(applied.code, 0, applied.stderr)
  t.match(applied.stdout, / {2}create slot helper with model small\n[^]*Stack mine is applied; loaded: agent, helper; put into force: embed\.\n$/)
  t.match((await svc('list')).stdout, /mine +active +-/)
  t.match((await svc('apply', 'mine')).stdout, '  no change\nStack mine is applied; put into force: embed.\n')
  await gateway.slots.update('agent', { idle_timeout_s: 9 })
  t.match((await svc('show', 'mine')).stdout, /state +active, changed since/)

  t.match(await svc('export', 'mine', '-o', 'mine.svcstack.json'), { code: 0, stdout: 'Stack mine is in mine.svcstack.json.\n' })
  const envelope = JSON.parse(readFileSync(join(folder, 'mine.svcstack.json'), 'utf8')) as object
  t.match(JSON.parse((await svc('export', 'mine')).stdout), { ...envelope, exported_at: String })
  t.match(await svc('import', 'mine.svcstack.json', '--dry-run'), { code: 1, stderr: /stack mine already exists/ })
  t.match(await svc('import', 'mine.svcstack.json', '--dry-run', '--slug', 'other'), {
    code: 0, stdout: 'The envelope is valid, and the slug other is free.\nHere: coder, nomic, small\n'
  })
  t.match(await svc('import', 'mine.svcstack.json', '--slug', 'other'), { code: 0, stdout: /^Stack other is created\.\nHere: coder.*\nSee what/ })
  writeFileSync(join(folder, 'bent.json'), JSON.stringify(envelope).replace('"Mine"', '"Yours"'))
  t.match(await svc('import', 'bent.json', '--dry-run'), { code: 1, stderr: /checksum of the envelope is wrong/ })
  t.match(await svc('import', 'bent.json'), { code: 1, stderr: /stacks\.bad_envelope/ })
  writeFileSync(join(folder, 'No Slug.json'), '{}')
  t.match(await svc('import', 'No Slug.json'), { code: 2, stderr: /No Slug\.json is not a valid name for a stack/ })
  t.match(await svc('import', 'nowhere.json'), { code: 2, stderr: /cannot be read \(ENOENT\)/ })

  t.match(await svc('delete', 'other', '-f'), { code: 0, stdout: 'Stack other is deleted.\n' })
  t.match(await svc('delete', 'saber'), { code: 1, stderr: /stacks\.seed_immutable/ })
})

t.test('what does not run ends with 1', async t => {
  const gateway = await stacksApi(t)
  const far = { name: 'Far', slots: [{ slot: 'agent', model: 'not-here', device: 'cpu' }] }
  await gateway.call('POST', '/api/stacks', { slug: 'far', stack: far })
  const dry = await run(['stack', 'apply', 'far', '--dry-run', '--url', gateway.baseUrl])
  t.match(dry, { code: 1, stderr: /stack far does not fit this host: slot agent is serving and would not start again; nothing was changed\nFix .*--force/ })
  t.match(await run(['stack', 'apply', 'far', '--yes', '--url', gateway.baseUrl]), { code: 1, stderr: /would leave slot 'agent' unable to start: .*not-here.*stacks\.would_break/ })
  for (const more of [[], ['--json']]) {
    const { code, stdout, stderr } = await run(['stack', 'apply', 'far', '--yes', '--force', ...more, '--url', gateway.baseUrl])
    t.equal(code, 1)
    if (more.length === 0) t.match(stdout, /Stack far is configured; failed: slot:agent\.\n$/)
    t.match(stderr, /stack far is active, but not all of it is running\n[^]*slot:agent: .*not-here/)
  }
  t.match((await run(['stack', 'list', '--url', gateway.baseUrl])).stdout, /far +active, not all runs/)
})

t.test('the list says which built-in stacks are for other machines', async t => {
  const gateway = await stacksApi(t, CPU_ONLY, { deviceNodes: [] })
  t.match((await run(['stack', 'list', '--url', gateway.baseUrl], { columns: 120 })).stdout, /saber +not for this host: no gpu-/)
})

t.test('on a terminal it asks, after it has shown what would change', async t => {
  const preview = { summary: ['unload slot old', 'evil \u001b[2J'], warnings: ['no model'] }
  const fake = await fakeApi({ 'POST /api/stacks/mine/apply': preview })
  t.teardown(() => fake.close())
  const terminal = new FakeProcess({ tty: true })
  const finished = terminal.run('stack', 'apply', 'mine', '--url', fake.url)
  await terminal.shows('stderr', 'Apply stack mine?')
  terminal.stdin.write('n\r')
  const { code, stdout, stderr } = await finished
  t.equal(code, 1)
  t.match(stdout, '  unload slot old\n')
  t.match(stderr, 'Warning: no model')
  t.notMatch(stdout, '\u001b[2J')
  t.match(stderr, 'nothing was changed')
  t.strictSame(fake.seen.map(({ line }) => line), ['POST /api/stacks/mine/apply?dry_run=true'])
})
