import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import t from 'tap'
import { testEngine } from '../kernel/runtime/engines.js'
import { GATEWAY_IMAGE, makeGatewayImage } from './support/gateway-image.js'

t.setTimeout(600_000)

const MOST_BYTES = 200_000_000
const JSON_TYPE = { 'content-type': 'application/json' }
const run = promisify(execFile)

t.test('the image runs with nothing but a volume, and hands a home from one container to the next', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const env = { ...process.env, DOCKER_HOST: engine.host }
  const docker = async (...args: string[]): Promise<string> => (await run('docker', args, { env })).stdout.trim()
  const name = `svc-test-image-${randomBytes(4).toString('hex')}`
  t.teardown(async () => {
    await docker('rm', '--force', `${name}-1`, `${name}-2`).catch(() => '')
    await docker('volume', 'rm', '--force', name)
  })
  t.match(await makeGatewayImage(env), `The image ${GATEWAY_IMAGE} is there`)
  const [size, user] = (await docker('image', 'inspect', '--format', '{{.Size}} {{.Config.User}}', GATEWAY_IMAGE)).split(' ')
  t.ok(Number(size) < MOST_BYTES, `${size} bytes`)
  t.equal(user, '65532:65532', 'not root')

  const start = async (which: 1 | 2): Promise<LogReader> => {
    await docker(
      'run', '--detach', '--name', `${name}-${which}`, '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges',
      '--volume', `${name}:/data`, '--publish', '127.0.0.1::8080', '--env', 'SVC_ALLOWED_HOSTS=gateway.example, other.example', GATEWAY_IMAGE
    )
    return new LogReader(spawn('docker', ['logs', '--follow', `${name}-${which}`], { env, stdio: ['ignore', 'pipe', 'pipe'] }))
  }
  const urlOf = async (which: 1 | 2): Promise<string> => `http://${(await docker('port', `${name}-${which}`, '8080')).split('\n')[0]!}`

  const first = await start(1)
  await first.says(/is ready at/)
  const url = await urlOf(1)
  t.equal((await fetch(`${url}/health/ready`)).status, 200)
  for (const [host, status] of [['gateway.example', 200], ['other.example:80', 200], ['elsewhere.example', 421]] as const) t.equal(await statusFor(url, host), status, host)
  t.match(await docker('exec', `${name}-1`, 'svc', 'status'), /^svc \d+\.\d+\.\d+ at http:\/\/127\.0\.0\.1:8080: ok/)
  t.match(await (await fetch(`${url}/api/updates/state`)).json(), { installation: { kind: 'container', advice: /pull the newer image/ } })

  const second = await start(2)
  await second.says(/on this home is running; waiting to take over/)
  const written = await fetch(`${url}/api/upstreams`, { method: 'POST', headers: JSON_TYPE, body: '{"name":"kept","url":"http://127.0.0.1:1/v1","auth_style":"none"}' })
  t.equal(written.status, 201)
  await docker('kill', '--signal', 'KILL', `${name}-1`)
  await second.says(/is ready at/)
  const taken = await urlOf(2)
  t.match(await (await fetch(`${taken}/api/upstreams`)).json(), [{ name: 'kept' }], 'what the first acknowledged')
  await docker('stop', '--time', '60', `${name}-2`)
  t.equal(await docker('inspect', '--format', '{{.State.ExitCode}}', `${name}-2`), '0', 'it stops when it is told to')
  first.end()
  second.end()
})

/** What a container says, as far as it was read. */
class LogReader {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>
  #text = ''
  #heard = (): void => {}

  constructor (child: ChildProcessByStdio<null, Readable, Readable>) {
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.#text += chunk.toString('utf8')
        this.#heard()
      })
    }
    child.once('close', () => this.#heard())
  }

  /** Rejects when the container ends without it. */
  async says (pattern: RegExp): Promise<void> {
    while (!pattern.test(this.#text)) {
      if (this.#child.exitCode !== null) throw new Error(`it never said ${pattern}: ${this.#text}`)
      await new Promise<void>(resolve => { this.#heard = resolve })
    }
  }

  end (): void {
    this.#child.kill('SIGKILL')
  }
}

function statusFor (url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${url}/v1/models`, { headers: { host }, agent: false }, answer => {
      answer.resume()
      resolve(answer.statusCode!)
    }).once('error', reject).end()
  })
}
