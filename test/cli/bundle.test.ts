import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t from 'tap'
import * as contract from '../../kernel/contract/index.js'
import * as testing from '../../kernel/testing/index.js'
import { treeFiles } from '../bundle/release.js'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'

t.setTimeout(600_000)

const exec = promisify(execFile)
const program = shippedProgram()

/** There are 8,000 and more. */
const MOST_SCHEMAS = 2_200

/** Packages, and the page of `GET /api/docs`. */
const heavy = /\/node_modules\/(?:dockerode|@huggingface\/(?:gguf|jinja)|tar-stream)\/|\/plugins\/api\/docs\/page\.ts$/

/** What a gateway prints first. Rejects when it ends without. */
async function firstOf (gateway: ChildProcessWithoutNullStreams): Promise<string> {
  const ended = once(gateway, 'close').then(([code]) => { throw new Error(`the gateway ended with ${code} before it was ready`) })
  const [line] = await Promise.race([once(gateway.stdout, 'data'), ended]) as [Buffer]
  return line.toString()
}

t.test('what was compiled is kept for the user, and nothing depends on it', async t => {
  const home = t.testdir()
  const help = async (env: Record<string, string>): Promise<string> => {
    const { stdout, stderr } = await exec(process.execPath, [program, 'slot', '--help'], { env })
    t.equal(stderr, '')
    return stdout
  }
  const text = await help({ HOME: home })
  t.match(text, 'manage slots')
  const code = join(home, '.cache/svc/code')
  const folder = join(code, readdirSync(code)[0]!)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  const files = readdirSync(folder).map(name => join(folder, name))
  t.ok(files.some(file => file.endsWith('/main.cjs')))

  for (const file of files) writeFileSync(file, readFileSync(file).fill(0x5a, 100))
  t.equal(await help({ HOME: home }), text, 'a disk that lies')
  for (const file of files) t.notOk(readFileSync(file).subarray(100).every(byte => byte === 0x5a), `${file} is written again`)

  for (const file of files) writeFileSync(file, 'not ours')
  chmodSync(folder, 0o777)
  t.equal(await help({ HOME: home }), text, 'a folder that others may write to is neither read nor written')
  t.equal(readFileSync(files[0]!, 'utf8'), 'not ours')

  const absent = join(home, 'nobody')
  t.equal(await help({ HOME: absent }), text)
  t.notOk(existsSync(absent))
  t.equal(await help({}), text)

  writeFileSync(join(home, 'no-folder'), '')
  t.equal(await help({ HOME: home, XDG_CACHE_HOME: join(home, 'no-folder') }), text, 'a place that cannot be looked at')

  mkdirSync(join(home, 'caches'))
  t.equal(await help({ HOME: absent, XDG_CACHE_HOME: join(home, 'caches') }), text)
  t.equal(readdirSync(join(home, 'caches/svc/code')).length, 1)
})

t.test('a release of another version than the sources says so, whatever it is asked', async t => {
  const tree = t.testdir()
  for (const [path, file] of Object.entries(treeFiles('7.1.0-rc.1'))) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    if (typeof file === 'string') writeFileSync(join(tree, path), file)
    else copyFileSync(file.path, join(tree, path))
  }
  for (const line of [['--version'], ['-V'], ['slot', '--version'], ['--version', '--help']]) {
    const { stdout } = await exec(process.execPath, [join(tree, 'dist/lib/svc.cjs'), ...line], { env: { HOME: tree } })
    t.match(stdout, /^svc 7\.1\.0-rc\.1\n/, line.join(' '))
  }
})

t.test('what outlives collections while the gateway is young is allocated as before, not in the old generation', async t => {
  // made in the program's own process, whose requests would be judged the same way
  const survivors = 'process.on("exit", () => { const kept = []; for (let i = 0; i < 100_000; i++) kept.push({ of: { i } }) })'
  const judged = async (...args: string[]): Promise<boolean> => {
    const { stdout } = await exec(process.execPath, ['--trace-pretenuring-statistics', '--import', `data:text/javascript,${encodeURIComponent(survivors)}`, ...args], { env: {} })
    return /=> (maybe )?tenure/.test(stdout)
  }
  t.equal(await judged('-e', '0'), true, 'what V8 does unasked')
  t.equal(await judged(program, 'serve', '--help'), false)
})

t.test('V8 does not collect all of a gateway again and again to give memory back', async t => {
  // what V8 waits for by itself is due at once here, and told
  const hurried = `const v8 = require('node:v8'), set = v8.setFlagsFromString
    set(process.versions.node < '21' ? '--trace-gc-verbose' : '--trace-memory-reducer')
    set('--gc-memory-reducer-start-delay-ms=1')
    v8.setFlagsFromString = flag => {
      if (flag !== process.env.WITHOUT) set(flag.replace(/(reducer-start-delay-ms)=8000$/, '$1=1'))
      if (flag === '--opt') process.stderr.write('optimizes')
    }`
  const reduces = async (env: Record<string, string>): Promise<boolean> => {
    const home = t.testdir({ 'hurried.cjs': hurried })
    const gateway = spawn(process.execPath, [
      '--require', join(home, 'hurried.cjs'), program, 'serve', '--home', join(home, 'svc'), '--port', '0', '--ready-json'
    ], { env: { HOME: home, ...env } })
    const told = textOf(gateway.stdout)
    let complaints = ''
    for await (const piece of gateway.stderr.setEncoding('utf8')) {
      complaints += piece as string
      if (complaints.includes('optimizes')) gateway.kill('SIGTERM')
    }
    const said = await told
    if (!complaints.includes('optimizes')) throw new Error(`the gateway ended before it was up: ${complaints}${said}`)
    return said.includes('Memory reducer: ')
  }
  t.equal(await reduces({ WITHOUT: `--gc-memory-reducer-start-delay-ms=${2 ** 31 - 1}` }), true, 'what V8 does unasked')
  t.equal(await reduces({}), false)
})

t.test('a start makes the schemas of configuration, not those of requests, answers and documents, and loads no heavy library', async t => {
  const home = t.testdir({ etc: { svc: { 'svc.toml': '[runtime]\ndriver = "process"\n' } } })
  const count = `import fs from 'node:fs'
    import { createRequire } from 'node:module'
    const { cache } = createRequire(process.argv[1]), files = []
    for (const name of ['openSync', 'readFileSync']) {
      const original = fs[name]
      fs[name] = (path, ...words) => {
        files.push(String(path))
        return original(path, ...words)
      }
    }
    let made = 0
    globalThis.__zod_globalConfig = { postProcessor: schema => { if (schema._zod?.def?.type !== undefined) made++ } }
    process.on('exit', () => process.stderr.write('schemas made: ' + made + '\\nloaded: ' + JSON.stringify([...files, ...Object.keys(cache)])))`
  const gateway = spawn(process.execPath, [
    '--import', `data:text/javascript,${encodeURIComponent(count)}`, program, 'serve', '--home', home, '--port', '0', '--ready-json'
  ], { env: { HOME: home } })
  const told = textOf(gateway.stderr)
  const { url } = JSON.parse(await firstOf(gateway)) as { url: string }
  t.equal((await fetch(`${url}/api/health`)).status, 200)
  gateway.kill('SIGTERM')
  const [, counted, list] = /schemas made: (\d+)\nloaded: (.*)/.exec(await told)!
  const made = Number(counted)
  t.ok(made > 100, 'they are counted')
  t.ok(made < MOST_SCHEMAS, `${made} are made: see what makes them at the top of a module or in 'register'`)

  const loaded = JSON.parse(list!) as string[]
  const sources = loaded.filter(path => existsSync(`${path}.map`))
    .flatMap(path => (JSON.parse(readFileSync(`${path}.map`, 'utf8')) as { readonly sources: string[] }).sources)
  t.ok(loaded.some(path => path.endsWith('/index.node')), 'modules and files are listed')
  t.ok(sources.some(path => path.endsWith('/plugins/api/docs/index.ts')), 'and what the files were made of')
  t.strictSame([...loaded, ...sources].filter(path => heavy.test(path)), [], 'what is large and rarely needed is loaded when it is first used')
})

t.test('a gateway starts without V8\'s optimizing compiler', async t => {
  const told = `const v8 = require('node:v8'), { existsSync } = require('node:fs'), set = v8.setFlagsFromString
    v8.setFlagsFromString = flag => {
      if (/opt$/.test(flag)) process.stderr.write(flag + ' ' + existsSync(process.env.HOME + '/.cache/svc/code') + '\\n')
      set(flag)
    }`
  const never = `${told}
    require('node:diagnostics_channel').subscribe('http.server.request.start', ({ request }) => {
      process.stderr.write(request.url + '\\n')
    })
    const timer = setTimeout
    globalThis.setTimeout = (work, ms, ...words) => ms === 2500 ? { unref () {} } : timer(work, ms, ...words)`
  // the cached code of Node's own modules is taken only while the flags of V8 are as they were
  const late = `${never}
    const watched = v8.setFlagsFromString
    let before = null
    v8.setFlagsFromString = flag => {
      // set and set back
      if (!flag.includes('memory-reducer')) before ??= new Set(process.moduleLoadList)
      watched(flag)
    }
    process.on('exit', () => process.stdout.write('loaded late: ' + process.moduleLoadList.filter(name => {
      return name.startsWith('NativeModule ') && !name.includes('internal/') && !before.has(name)
    }).join(', ')))`
  const startAt = (home: string): ChildProcessWithoutNullStreams => spawn(process.execPath, [
    '--require', join(home, 'told.cjs'), program, 'serve', '--home', join(home, 'svc'), '--port', '0', '--ready-json'
  ], { env: { HOME: home } })
  const lines = async (gateway: ChildProcessWithoutNullStreams, last: string): Promise<string> => {
    let lines = ''
    for await (const part of gateway.stderr) {
      lines += String(part)
      if (lines.includes(last)) break
    }
    const ended = once(gateway, 'exit')
    if (gateway.exitCode !== null || !gateway.kill('SIGTERM')) throw new Error(`it ended before it said ${last}: ${lines}`)
    await ended
    return lines
  }

  t.test('and has it once the code of its start is kept, one file at a time, which the next start takes as it is, also where threads were started', async t => {
    // what comes meanwhile must not wait for all of them
    const counted = `${told}
      const fs = require('node:fs'), rename = fs.renameSync
      let kept = 0, most = 0, now = 0
      fs.renameSync = (from, to) => {
        if (to.includes('/.cache/svc/code/')) {
          kept++
          if (now++ === 0) setImmediate(() => { now = 0 })
          most = Math.max(most, now)
        }
        rename(from, to)
      }
      const before = v8.setFlagsFromString
      v8.setFlagsFromString = flag => {
        if (flag === '--opt') process.stderr.write('kept ' + kept + ', at once ' + most + '\\n')
        before(flag)
      }`
    const home = t.testdir({ 'told.cjs': counted, 'svc': { etc: { svc: { 'svc.toml': '[memory]\nenabled = true\n' } } } })
    t.match(await lines(startAt(home), '--opt true'), /^--no-opt false\nkept [1-9]\d*, at once 1\n--opt true\n$/)
    // a first one that takes long, on a machine with other work, has loaded the last of it later
    await lines(startAt(home), '--opt true')
    t.equal(await lines(startAt(home), '--opt true'), '--no-opt true\nkept 0, at once 0\n--opt true\n')
  })

  t.test('and has it from the first request on that is work, without waiting for that; the modules of Node that it needs are loaded before', async t => {
    const gateway = startAt(t.testdir({ 'told.cjs': late }))
    const { url } = JSON.parse(await firstOf(gateway)) as { readonly url: string }
    const posted = async (path: string): Promise<number> => (await fetch(url + path, { method: 'POST' })).status
    t.equal((await fetch(`${url}/v1/models`)).status, 200)
    t.equal(await posted('/api/slots/none/load'), 404)
    t.equal(await posted('/v1/chat/completions'), 400)
    const rest = textOf(gateway.stdout)
    t.equal(await lines(gateway, '--opt'), [
      '--no-opt false', '/v1/models', '/api/slots/none/load', '/v1/chat/completions', '--opt false', ''
    ].join('\n'))
    t.equal(/loaded late: (.*)/.exec(await rest)?.[1], '', 'those named here go into cli/heap-flags')
  })
})

t.test('stack traces of what ships name functions, and with source maps the sources', async t => {
  const home = t.testdir({ etc: { svc: { 'svc.toml': 'x = [' } } })
  const trace = async (options: string): Promise<string> => await exec(process.execPath, [program, 'serve', '--home', home, '--port', '0'], {
    env: { HOME: home, SVC_DEBUG: '1', NODE_OPTIONS: options }
  }).then(() => '', ({ stderr }: { stderr: string }) => stderr)
  t.match(await trace(''), /at async openKernel \(\S+\/dist\/lib\/\w+\.cjs:\d+:\d+\)/)
  t.match(await trace('--enable-source-maps'), new RegExp(`at async openKernel \\(${root.replace(/\/$/, '')}/kernel/kernel-services\\.ts:\\d+:\\d+\\)`))
})

t.test('svc-gateway/plugin and svc-gateway/testing of what ships have what the sources export, as one module', async t => {
  const script = `
    const [plugin, again, testing] = await Promise.all(['plugin', 'plugin.js?again', 'testing'].map((name, i) =>
      import(i === 1 ? '${join(root, 'dist/lib/plugin.js')}?again' : 'svc-gateway/' + name)))
    const gateway = await testing.createTestGateway({ plugins: [plugin.definePlugin({ name: 'mine', kind: 'service', apiVersion: 1, register () {} })] })
    const [{ state }] = gateway.gateway.report().filter(({ name }) => name === 'mine')
    await gateway.close()
    console.log(JSON.stringify({ plugin: Object.keys(plugin), testing: Object.keys(testing), same: again.SvcError === plugin.SvcError, state }))`
  const { stdout } = await exec(process.execPath, ['--input-type=module', '--eval', script], { cwd: root, env: { HOME: t.testdir() } })
  t.strictSame(JSON.parse(stdout), {
    plugin: Object.keys(contract).sort(), testing: Object.keys(testing).sort(), same: true, state: 'active'
  })
})
