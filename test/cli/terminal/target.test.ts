import { readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { targetOf, type Named } from '../../../cli/client/target.js'
import { createTestGateway } from '../../../kernel/testing/index.js'
import plugins from '../../../plugins/api/plugins/index.js'
import slots from '../../../plugins/api/slots/index.js'
import status from '../../../plugins/api/status/index.js'
import { fakeApi, run } from '../support.js'

t.test('an option wins over a variable, and a URL over a home that is named the same way', async t => {
  const by = (how: Named['by'], value: string): Named => ({ by: how, value })
  for (const [url, home, target] of [
    [null, null, { kind: 'system' }],
    [null, by('variable', '/h'), { kind: 'home', home: '/h' }],
    [by('variable', 'u'), null, { kind: 'gateway', url: 'u', home: null }],
    [by('variable', 'u'), by('option', '/h'), { kind: 'home', home: '/h' }],
    [by('option', 'u'), by('variable', '/h'), { kind: 'gateway', url: 'u', home: null }],
    [by('option', 'u'), by('option', '/h'), { kind: 'gateway', url: 'u', home: '/h' }],
    [by('variable', 'u'), by('variable', '/h'), { kind: 'gateway', url: 'u', home: '/h' }]
  ] as const) t.same(targetOf({ url, home }), target)
})

t.test('which gateway and which home a command means', async t => {
  const gateway = await createTestGateway({
    plugins: [plugins, slots, status], files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n' }
  })
  t.teardown(() => gateway.close())
  const { baseUrl, home } = gateway
  const elsewhere = t.testdir({})

  await t.test('commands that ask the API find the gateway of SVC_HOME, as those that work on files do', async t => {
    const env = { SVC_HOME: home }
    t.match(await run(['status'], { env }), { code: 0, stdout: ` at ${baseUrl}: ` })
    t.equal((await run(['slot', 'list'], { env })).code, 0)
    t.match(await run(['doctor'], { env }), { stdout: `gateway  answers at ${baseUrl}` })
  })

  await t.test('a home without a gateway is not another one: nothing else is asked in its place', async t => {
    const env = { SVC_HOME: elsewhere }
    t.match(await run(['slot', 'list'], { env }), {
      code: 1, stderr: `Error: no gateway runs on ${elsewhere}\nStart it with \`svc serve --home ${elsewhere}\``
    })
    t.match(await run(['doctor'], { env }), { stdout: `no gateway runs on ${elsewhere}` })
    t.same(await run(['completion-names', 'slot'], { env }), { code: 0, stdout: '', stderr: '' })
  })

  await t.test('commands that work on files work on those of the gateway that --url names', async t => {
    for (const args of [['config', 'validate', '--json'], ['doctor', 'perms'], ['config', 'show'], ['plugin', 'list']]) {
      const named = await run([...args, '--url', baseUrl])
      t.same(named, await run([...args, '--home', home]), args.join(' '))
    }
    t.match(await run(['plugin', 'remove', 'svc-plugin-none', '--url', baseUrl]), { code: 1, stderr: 'svc-plugin-none is not installed' })
    t.match(await run(['config', 'show', '--url', baseUrl, '--home', elsewhere]), { code: 1, stderr: `runs on ${home}, not on ${elsewhere}` })
    t.match(await run(['config', 'show', '--url', 'http://127.0.0.1:9']), { code: 1, stderr: 'no gateway answers at http://127.0.0.1:9' })
  })

  await t.test('where nothing is named and the system has no home, files are those of the gateway that answers', async t => {
    const usual = { url: baseUrl, home: join(elsewhere, 'none') }
    for (const args of [['config', 'show'], ['plugin', 'list']]) {
      t.same(await run(args, { usual }), await run([...args, '--home', home]), args.join(' '))
    }
    const { stdout } = await run(['doctor'], { usual })
    t.match(stdout, `gateway  answers at ${baseUrl}`)
    t.match(stdout, join(home, 'etc/svc/slots'), 'its folders are looked at')
    t.match(await run(['config', 'edit'], { usual: { url: 'http://127.0.0.1:9', home: usual.home } }), { code: 1, stderr: `no gateway home at ${usual.home}` })
    t.match(await run(['config', 'show'], { usual: { url: baseUrl, home: elsewhere } }), await run(['config', 'show', '--home', elsewhere]),
      'a system that has a home means that one')
  })

  await t.test('the files of a gateway on another machine are refused', async t => {
    const known = await (await fetch(`${baseUrl}/api/status`)).json() as object
    const other = await fakeApi({ 'GET /api/status': { ...known, instance: '00000000-0000-4000-8000-000000000000' } })
    t.teardown(() => other.close())
    for (const args of [['plugin', 'add', 'svc-plugin-x'], ['config', 'edit'], ['config', 'validate'], ['doctor'], ['registry', 'import', 'x.tar']]) {
      t.match(await run([...args, '--url', other.url]), { code: 1, stderr: `the gateway at ${other.url} runs on another machine` }, args.join(' '))
    }
  })
})

t.test('no command makes a folder of a home by itself', async t => {
  const root = t.testdir({})
  const empty = join(root, 'empty')
  await mkdir(empty)
  const absent = join(root, 'absent')
  const reading = [
    ['config', 'show'], ['config', 'validate'], ['config', 'migrate'], ['doctor', '--url', 'http://127.0.0.1:9'], ['doctor', 'perms'],
    ['plugin', 'list'], ['capabilities', 'migrate', '--dry-run'], ['migrate', 'model-layout', '--mount-root', root], ['slot', 'list']
  ]
  for (const home of [empty, absent]) {
    for (const args of reading) {
      await run(args, { env: { SVC_HOME: home } })
      t.same(readdirSync(root).sort(), ['empty'], `${args.join(' ')} made a home`)
      t.same(readdirSync(empty), [], args.join(' '))
    }
  }
  for (const args of [
    ['plugin', 'add', 'svc-plugin-x'], ['plugin', 'remove', 'svc-plugin-x'], ['config', 'edit'], ['capabilities', 'migrate'],
    ['migrate', 'model-layout', '--apply', '--mount-root', root]
  ]) {
    t.match(await run(args, { env: { SVC_HOME: absent, EDITOR: 'true' } }), { code: 1, stderr: `there is no gateway home at ${absent}` }, args.join(' '))
    t.same(readdirSync(root).sort(), ['empty'])
  }
})
