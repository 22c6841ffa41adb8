import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { packageRoot } from '../../kernel/config/package-root.js'
import { until } from '../wire/wire-gateway.js'
import { sh } from './shell.js'
import type { Workshop } from './workshop.js'

const MISTAKE = 'if (Date.now() > 0) throw new Error(`not today`)\n    '

/** `svc plugin dev` as an author has it in a terminal. */
interface Dev {
  readonly text: () => string
  /** Waits for a line that comes after what was there when it was called. */
  readonly says: (pattern: RegExp) => Promise<void>
  readonly interrupt: () => Promise<void>
}

function startDev (t: Test, shop: Workshop, folder: string, home: string): Dev {
  const child = spawn(process.execPath, [shop.svc, 'plugin', 'dev', folder, '--home', home], { env: shop.env, cwd: shop.folder })
  const closed = once(child, 'close')
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await closed
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { text += chunk.toString('utf8') })
  return {
    text: () => text,
    says: async pattern => {
      const from = text.length
      await until(() => pattern.test(text.slice(from)) || child.exitCode !== null, `${pattern} after:\n${text}`, 120_000)
      t.match(text.slice(from), pattern)
    },
    interrupt: async () => {
      child.kill('SIGINT')
      await closed
    }
  }
}

async function edit (path: string, change: (text: string) => string): Promise<void> {
  const before = await readFile(path, 'utf8')
  const after = change(before)
  if (after === before) throw new Error(`nothing was changed in ${path}`)
  await writeFile(path, after)
}

/** Where what plugins are built with is installed already: the author who says `--no-install` has it from elsewhere. */
const SHARED = ['engine', 'service', 'tools']

/** What an author has from the npm package alone, in a workshop whose template is installed and built. */
export async function authorChecks (t: Test, shop: Workshop): Promise<void> {
  const script = (text: string): Promise<string> => sh(t, shop.folder, shop.env, text)

  await t.test('svc plugin new writes plugins that build and pass their tests', async t => {
    for (const kind of SHARED) {
      const written = await script(`svc plugin new my-${kind} --kind ${kind} --no-install`)
      t.match(written, /npm install && npx svc plugin link && npm run build && npm test/)
      if (kind === 'tools') t.match(written, '/mcp/my-tools')
      await script(`rm -r my-${kind}/node_modules && ln -s '${shop.plugin}/node_modules' my-${kind}/node_modules`)
    }
    t.match(await script('svc plugin new my-routes --kind routes'), /cd my-routes && npm run build && npm test/)
    await script(`'${shop.plugin}/node_modules/.bin/tsc' -b ${SHARED.map(kind => `my-${kind}`).join(' ')}`)
    await script('node --test my-service/dist/test/*.test.js my-tools/dist/test/*.test.js')
    const gateway = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { devDependencies: object }
    for (const kind of [...SHARED, 'routes']) {
      const own = JSON.parse(await readFile(join(shop.folder, `my-${kind}`, 'package.json'), 'utf8')) as { name: string, devDependencies: Readonly<Record<string, string>> }
      t.equal(own.name, `svc-plugin-my-${kind}`)
      const { typescript, ...others } = own.devDependencies
      t.match(gateway.devDependencies, { ...others, 'typescript-native': `npm:typescript@${typescript}` }, 'it is built with what the gateway is built with')
      const sources = await readFile(join(shop.folder, `my-${kind}`, 'src/index.ts'), 'utf8')
      t.notMatch(sources, /\bexample\b|\bespeak\b(?!-ng)/, 'the name of the template is gone')
    }
  })

  await t.test('a folder that is not empty, and a name that no plugin can have, are refused', async t => {
    await t.rejects(script('svc plugin new my-routes'), /is not empty; nothing was written/)
    await t.rejects(script('svc plugin new Bad_Name'), /'Bad_Name' cannot be the name of a plugin[^]*lower case/)
    await t.rejects(script('svc plugin new other --kind engines'), /Allowed choices are engine, routes, service, tools/)
  })

  await t.test('svc plugin dev loads it, and anew at each change, and shows its log', async t => {
    const folder = join(shop.folder, 'my-routes')
    const source = join(folder, 'src/index.ts')
    const home = join(shop.folder, 'home-dev')
    const dev = startDev(t, shop, folder, home)
    // the compiler misses what changes while it starts to watch
    await dev.says(/build .*Watching for file changes/)
    t.match(dev.text(), /load {2}my-routes is active/)
    await sh(t, folder, shop.env, 'npm test')
    const [url = ''] = /http:\/\/[\d.]+:\d+/.exec(dev.text()) ?? []
    const put = async (): Promise<unknown> => await (await fetch(`${url}/api/my-routes/milk`, {
      method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"text":"buy some"}'
    })).json()
    t.match(await put(), { text: 'buy some' })

    let said = dev.says(/reload {2}my-routes is active/)
    await edit(source, text => text.replace('const note = { text,', 'ctx.log.debug({ name }, `keeping`)\n        const note = { text: text.toUpperCase(),'))
    await said
    said = dev.says(/debug {2}keeping \{"name":"milk"\}/)
    // the log is read from a moment after the load on
    const asking = setInterval(() => { void put() }, 200)
    await said
    clearInterval(asking)
    t.match(await put(), { text: 'BUY SOME' })

    said = dev.says(/reload {2}my-routes.*a changed one failed.*register.*src\/index\.ts:\d+: not today/)
    await edit(source, text => text.replace('const timers =', `${MISTAKE}const timers =`))
    await said
    t.match(await put(), { text: 'BUY SOME' }, 'what ran before goes on')
    said = dev.says(/reload {2}my-routes is active/)
    await edit(source, text => text.replace(MISTAKE, ''))
    await said

    const others = (text: string): Promise<string> => script(`${text} --home '${home}'`)
    for (const kind of ['service', 'tools']) t.match(await others(`svc plugin add ./my-${kind}`), new RegExp(`Plugin my-${kind} is active`))
    t.match(await others('svc plugin list'), /^my-routes +active[^]*^my-service +active[^]*^my-tools +active/m, 'each of them loads, and leaves the linked one alone')
    const called = await fetch(`${url}/mcp/my-tools`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'accept': 'application/json, text/event-stream' },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slot_state","arguments":{"slot":"none"}}}'
    })
    t.match(await called.text(), /slot\.not_found/, 'agents call its tool where `svc plugin new` says')
    t.match(await others('svc plugin remove my-service'), /svc-plugin-my-service is removed/, 'by the name that the list shows')

    const isLinked = (): boolean => existsSync(join(folder, 'node_modules/svc-gateway/package.json'))
    await sh(t, folder, shop.env, 'npm install')
    await until(isLinked, 'dev links the gateway again')

    t.notMatch(dev.text(), /import_failed/, 'what is loaded before the compiler has looked at it is what the compiler makes')
    await dev.interrupt()
    t.match(dev.text(), /svc-plugin-my-routes is unloaded from the gateway\./)
    t.notMatch(await readFile(join(home, 'etc/svc/svc.toml'), 'utf8'), /my-routes/)
    await sh(t, folder, { ...shop.env, npm_config_ignore_scripts: 'false' }, 'npm install')
    t.ok(isLinked(), 'npm install, which takes the link away, has it set again')
  })
}
