import type { ContainerForm, EngineSpec } from '../contract/provider/engine-runtime.js'

/**
 * A small HTTP engine for `node -e`, the same in a container and as a process.
 * Environment: PORT, HOST, STUBBORN=1 (ignores SIGTERM), EXIT_CODE (ends at once with it), SAY (printed first),
 * MORE (a further port, the same there).
 * Requests: /env, /pid, /say?text=…&times=N (stdout), /complain?text=… (stderr), /exit?code=N, /spawn?detached=1.
 */
export const TINY_ENGINE = `
const http = require('http'), { spawn } = require('child_process')
const { PORT, HOST, STUBBORN, EXIT_CODE, SAY, MORE } = process.env
if (SAY) process.stdout.write(SAY + '\\n')
if (EXIT_CODE) process.exit(Number(EXIT_CODE))
process.on('SIGTERM', () => {
  process.stdout.write('asked to stop\\n')
  if (!STUBBORN) process.exit(0)
})
const answer = (req, res) => {
  const { pathname, searchParams: q } = new URL(req.url, 'http://engine')
  if (pathname === '/say') process.stdout.write(q.get('text').repeat(Number(q.get('times') || 1)) + '\\n')
  if (pathname === '/complain') process.stderr.write(q.get('text') + '\\n')
  let said = process.env
  if (pathname === '/spawn') {
    const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'],
      { detached: q.get('detached') === '1', stdio: 'ignore' })
    said = { pid: child.pid }
  }
  if (pathname === '/pid') said = { pid: process.pid }
  res.setHeader('connection', 'close')
  res.end(JSON.stringify(said), () => { if (pathname === '/exit') process.exit(Number(q.get('code'))) })
}
if (MORE) http.createServer(answer).listen(Number(MORE), HOST)
http.createServer(answer).listen(Number(PORT), HOST, () => process.stdout.write('ready\\n'))
`

/** A launch of the small engine, in the words that say what about it matters. */
export interface EngineWish {
  readonly name: string
  readonly port: number
  readonly ports?: Readonly<Record<string, number>>
  readonly labels: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  /** `host`: the host's network (containers). `everywhere`: reachable on all addresses. */
  readonly network?: 'host' | 'everywhere'
}

export function tinyProcess (wish: EngineWish): EngineSpec {
  const bindHost = wish.network === 'everywhere' ? '0.0.0.0' : '127.0.0.1'
  const form = { kind: 'process', command: process.execPath, args: ['-e', TINY_ENGINE], workingDir: null, bindHost, label: 'tiny' } as const
  return { ...common(wish, bindHost), form }
}

/** @param image with `node` on its path and no entry point that is in the way */
export function tinyContainer (image: string, wish: EngineWish): EngineSpec & { readonly form: ContainerForm } {
  const host = wish.network === 'host'
  return {
    ...common(wish, host ? '127.0.0.1' : '0.0.0.0'),
    form: {
      kind: 'container',
      image,
      digest: null,
      entrypoint: null,
      command: ['node', '-e', TINY_ENGINE],
      mounts: [],
      devices: [],
      cdiDevices: [],
      groups: [],
      network: host ? 'host' : 'bridge',
      publishHost: host ? null : wish.network === 'everywhere' ? '0.0.0.0' : '127.0.0.1',
      ipc: 'private',
      shmSizeBytes: null,
      ulimits: {},
      securityOpts: [],
      workingDir: null
    }
  }
}

function common (wish: EngineWish, host: string): Omit<EngineSpec, 'form'> {
  const { name, labels, port, ports } = wish
  const further = Object.fromEntries(Object.values(ports ?? {}).map(more => ['MORE', String(more)]))
  const env = { PORT: String(port), HOST: host, ...further, ...wish.env }
  return { name, labels, port, ...(ports === undefined ? {} : { ports }), env }
}
