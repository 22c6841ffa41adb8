import { execFile, type ExecFileException } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { embeddedGateway } from '../e2e/engine-gateways.js'
import { liveHome, startLive } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { brought, runClient } from './support/clients.js'
import { typedCalls, type ApiDocument } from './support/typed-calls.js'

t.setTimeout(900_000)

const own = join(root, 'test/rings/openapi')
const FUZZ_EXAMPLES = '6'

interface Ended { readonly code: number, readonly output: string }

function run (command: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise(resolve => {
    execFile(command, args, { cwd, maxBuffer: 64 * 1024 * 1024, env: { ...process.env, PATH: `${join(command, '..')}:${process.env.PATH}` } },
      (error: ExecFileException | null, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` })
      })
  })
}

async function folder (t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'svc-ring-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

/** A hub that has nothing: no test asks a real one. */
async function emptyHub (t: Test): Promise<string> {
  const server = createServer((request, response) => {
    const isSearch = request.url?.startsWith('/api/models?') === true
    response.writeHead(isSearch ? 200 : 404, { 'content-type': 'application/json' }).end(isSearch ? '[]' : '{"error":"Repository not found"}')
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Keeps what a fuzzer has the gateway write to its home, where this process could write anywhere. */
function jail (home: string): string[] {
  if (process.getuid?.() !== 0) return []
  return ['unshare', '--mount', 'sh', '-c', `mount --bind '${home}' '${home}' && mount -o remount,bind,ro / && exec "$@"`, 'sh']
}

t.test('a fuzzer that reads the document finds nothing', async t => {
  const venv = await brought(t, 'python-clients.sh', 'openapi')
  if (venv === null) return
  const hub = await emptyHub(t)
  // one worker: threads that compile at the same time break Python 3.11's own parser ("AST constructor recursion depth mismatch")
  const fuzz = (url: string, work: string, phases: readonly string[]): Promise<Ended> => run(join(venv, 'bin/schemathesis'), [
    '--config-file', join(own, 'schemathesis.toml'), 'run', `${url}/api/openapi.json`, '--checks', 'all', '--continue-on-failure', '--no-shrink',
    '--request-timeout', '60', '--suppress-health-check', 'all', '--warnings', 'off', '--seed', process.env.SVC_TEST_SEED ?? '1', '--phases', ...phases
  ], work)
  const findsNothing = async (t: Test, ...phases: readonly string[]): Promise<void> => {
    const home = await liveHome(t, {
      'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[memory]\nenabled = true\n[plugins.config.api-services]\ndownloads = false\n',
      'etc/svc/slots/agent.toml': 'type = "llm"\ndevice = "cpu"\n'
    })
    const gateway = await startLive(t, home, { HF_ENDPOINT: hub }, undefined, jail(home))
    // the fuzzer gives it ten seconds, and the first one is put together when it is asked for, beside all that starts here
    t.equal((await fetch(`${gateway.url}/api/openapi.json`)).status, 200)
    const { code, output } = await fuzz(gateway.url, await folder(t), phases)
    t.equal(await gateway.kill('SIGTERM'), 0)
    t.equal(code, 0, 'nothing is found', { output: failuresIn(output) })
    const [, selected, tested] = /Selected: (\d+)\/\1\s+Tested: (\d+)/.exec(output) ?? []
    t.comment(`${tested ?? 'none'} of ${selected ?? 'no'} operations; ${/\d+ generated/.exec(output)?.[0] ?? 'nothing was tried'}`)
    t.equal(tested ?? output, selected, 'every operation was tried')
  }
  // a fuzzer waits for its gateway, and the gateway for its fuzzer: side by side they take two thirds of the time
  t.jobs = 3
  await Promise.all([
    t.test('in what the document allows', t => findsNothing(t, 'examples,coverage', '--mode', 'positive')),
    t.test('in what it does not allow', t => findsNothing(t, 'coverage', '--mode', 'negative')),
    t.test('in what is drawn at random', t => findsNothing(t, 'fuzzing', '--mode', 'all', '--max-examples', FUZZ_EXAMPLES))
  ])
})

function failuresIn (output: string): string[] {
  return output.slice(Math.max(0, output.search(/= (FAILURES|ERRORS) =/))).split('\n').map(line => line.slice(0, 300)).slice(0, 400)
}

t.test('clients that are generated from the document', async t => {
  const gateway = await embeddedGateway(t, '[memory]\nenabled = true\n')
  const text = await (await fetch(`${gateway.url}/api/openapi.json`)).text()
  const work = await folder(t)
  const document = join(work, 'openapi.json')
  await writeFile(document, text)
  const env = { RING_URL: gateway.url, RING_DOCUMENT: document }

  await t.test('openapi-python-client, without a warning, and a typed call of each group', async t => {
    const venv = await brought(t, 'python-clients.sh', 'openapi')
    if (venv === null) return
    const client = join(work, 'python')
    const { code, output } = await run(join(venv, 'bin/openapi-python-client'), [
      'generate', '--path', document, '--output-path', client, '--config', join(own, 'python-client.yaml'), '--fail-on-warning'
    ], work)
    t.equal(code, 0, 'it ends well', { output })
    t.notMatch(output, /warning/i)
    await runClient(t, [join(venv, 'bin/python'), join(own, 'groups.py')], { ...env, PYTHONPATH: client })
  })

  await t.test('openapi-typescript, without a warning; every call is typed, and one of each group made', async t => {
    const packages = await brought(t, 'js-clients.sh', 'openapi')
    if (packages === null) return
    const bin = join(packages, 'node_modules/.bin')
    await symlink(join(packages, 'node_modules'), join(work, 'node_modules'))
    await writeFile(join(work, 'package.json'), '{ "type": "module" }')
    const { code, output } = await run(join(bin, 'openapi-typescript'), [document, '--output', join(work, 'openapi.d.ts')], work)
    t.equal(code, 0, 'it ends well', { output })
    t.notMatch(output, /warn/i)
    await writeFile(join(work, 'calls.ts'), typedCalls(JSON.parse(await readFile(document, 'utf8')) as ApiDocument))
    const types = await run(join(bin, 'tsc'), [
      '--strict', '--target', 'es2022', '--module', 'nodenext', '--moduleResolution', 'nodenext', '--lib', 'es2023,dom,dom.iterable', 'calls.ts'
    ], work)
    t.equal(types.code, 0, 'every call has its types', { output: types.output.slice(0, 8_000) })
    await runClient(t, [process.execPath, join(work, 'calls.js')], env)
  })
  t.equal(await gateway.kill('SIGTERM'), 0)
})
