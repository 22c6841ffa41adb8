import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent, request as ask } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { api, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import type { ApiRequest } from '../../plugins/runtimes/fake-cluster.js'
import type { Cluster } from '../support/cluster.js'
import { clusterHome, NAMESPACE, podsOf, slotFile } from './slots.js'

/** What is asked of pods; lists and watches go on beside it. */
export const isStep = ({ method, path }: ApiRequest): boolean => method !== 'GET' || /\/pods\/|\/events$/.test(path)
export const stepName = ({ method, path }: ApiRequest): string => `${method} ${path.replace(/^.*\/(pods|events|services)(\/svc-[^/]*)?/, '$1')}`

/** The side of the server's work on which a request is lost, and what is done then. */
interface Loss { readonly side: 'before' | 'after', readonly meanwhile: () => Promise<unknown> }

interface JudgedWay {
  /** Leads to the API server by way of `judge`, as the administrator. */
  readonly kubeconfig: string
  judge: (request: ApiRequest) => Loss | undefined
}

/** The gateway is killed on both sides of each request that changes something, and before each read between two of them. */
export async function diesInSteps (t: Test, here: Cluster): Promise<void> {
  const way = await judgedWay(t, here)
  const { start } = await clusterHome(t, way, { agent: slotFile() })
  let gateway: LiveGateway = await start()
  const verb = (name: 'load' | 'unload', body: object) => async (): Promise<number> =>
    (await api(gateway, 'POST', `/api/slots/agent/${name}`, body).catch(() => ({ status: 0 }))).status
  const [load, unload] = [verb('load', {}), verb('unload', { force: true })]
  const stepsOf = async (work: () => Promise<number>): Promise<string[]> => {
    const [steps, nameOf] = [new Set<string>(), placedNames()]
    way.judge = request => {
      if (isStep(request)) steps.add(nameOf(request))
      return undefined
    }
    t.equal(await work(), 200)
    way.judge = () => undefined
    return [...steps]
  }
  const launch = await stepsOf(load)
  const end = await stepsOf(unload)
  t.comment(`a launch: ${launch.join(', ')}; an end: ${end.join(', ')}`)
  t.strictSame(await podsOf(here), [])
  let kills = 0
  for (const [work, steps] of [[load, launch], [unload, end]] as const) {
    for (const step of steps) {
      for (const side of step.startsWith('GET') ? ['before'] as const : ['before', 'after'] as const) {
        const [nameOf, what] = [placedNames(), `${step}, ${side} it`]
        t.equal(await (work === load ? unload : load)(), 200, what)
        let isDead = false
        way.judge = request => {
          if (isDead || !isStep(request) || nameOf(request) !== step) return undefined
          isDead = true
          return { side, meanwhile: () => gateway.kill('SIGKILL') }
        }
        await work()
        way.judge = () => undefined
        // how often a pod is looked at depends on how fast it comes and goes
        if (!isDead) {
          t.comment(`${what}: it was not asked this time`)
          continue
        }
        kills++
        await gateway.ended
        gateway = await start()
        t.equal(await load(), 200, what)
        await eventually('one engine is left', async () => (await podsOf(here)).length === 1)
      }
    }
  }
  t.comment(`${kills} kills`)
  t.ok(kills >= 8, 'each of the four changes was lost on both sides')
  t.equal(await unload(), 200)
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

/** Names of the steps of one launch or end, each with the change before it: reads between two changes are all the same. */
function placedNames (): (request: ApiRequest) => string {
  let last = ''
  return request => {
    const name = stepName(request)
    const placed = `${name}${last}`
    if (request.method !== 'GET') last = ` after ${name}`
    return placed
  }
}

/** A door to the API server of a cluster of ours that looks at each request. */
async function judgedWay (t: Test, { kubectl }: Cluster): Promise<JudgedWay> {
  interface Config {
    readonly clusters: ReadonlyArray<{ readonly cluster: { readonly 'server': string, readonly 'certificate-authority-data': string } }>
    readonly users: ReadonlyArray<{ readonly user: { readonly 'client-certificate-data': string, readonly 'client-key-data': string } }>
  }
  const { clusters: [own], users: [admin] } = JSON.parse(await kubectl('config', 'view', '--raw', '--minify', '-o', 'json')) as Config
  const { server: target, 'certificate-authority-data': ca } = own!.cluster
  const { 'client-certificate-data': cert, 'client-key-data': key } = admin!.user
  const of = (text: string): Buffer => Buffer.from(text, 'base64')
  const agent = new Agent({ ca: of(ca), cert: of(cert), key: of(key), keepAlive: true })
  const way: JudgedWay = { kubeconfig: join(t.testdir(), 'kubeconfig'), judge: () => undefined }
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/', socket } = request
    const { host: _host, connection: _connection, ...headers } = request.headers
    const body: Buffer[] = []
    for await (const chunk of request) body.push(chunk as Buffer)
    const { pathname: path, searchParams: query } = new URL(url, target)
    const loss = way.judge({ method, path, query, authorization: undefined })
    if (loss?.side === 'before') {
      await loss.meanwhile()
      return void socket.destroy()
    }
    const asked = ask(new URL(url, target), { method, headers, agent })
    asked.on('error', () => socket.destroy())
    response.on('close', () => asked.destroy())
    asked.end(Buffer.concat(body))
    const [answer] = await once(asked, 'response') as [IncomingMessage]
    if (loss === undefined) return void answer.on('error', () => socket.destroy()).pipe(response.writeHead(answer.statusCode!, answer.headers))
    answer.resume()
    await once(answer, 'end')
    await loss.meanwhile()
    socket.destroy()
  }
  const server = createServer((request, response) => void pass(request, response).catch(() => request.socket.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
    agent.destroy()
  })
  await writeFile(way.kubeconfig, JSON.stringify({
    'apiVersion': 'v1',
    'kind': 'Config',
    'current-context': 'judged',
    'clusters': [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
    'users': [{ name: 'u', user: {} }],
    'contexts': [{ name: 'judged', context: { cluster: 'c', user: 'u', namespace: NAMESPACE } }]
  }))
  return way
}
