import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A pod as JSON. */
export interface FakePod {
  apiVersion: 'v1'
  kind: 'Pod'
  metadata: {
    name: string
    uid: string
    resourceVersion: string
    labels: Record<string, string>
    annotations: Record<string, string>
  }
  spec: { schedulingGates?: unknown[], activeDeadlineSeconds?: number, containers: Array<{ name: string, image: string }> }
  status: Record<string, unknown>
}

export interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
}

/** What becomes of a request: a refusal, an answer that is lost after the work or before it. Absent: it is done. */
export type Verdict = { readonly status: number, readonly message: string } | 'lost-after' | 'lost-before' | undefined

export interface FakeCluster {
  readonly kubeconfig: string
  readonly url: string
  readonly pods: Map<string, FakePod>
  readonly requests: ApiRequest[]
  /** By path: what is answered to every request for it. */
  readonly answers: Map<string, object>
  /** Lists of pods, and watches, so far. */
  readonly lists: () => number
  readonly watches: () => number
  /** Looked at before each request; it may take its time. */
  judge: (request: ApiRequest) => Verdict | Promise<Verdict>
  /** What becomes of a pod whose gate is opened. */
  run: (pod: FakePod) => void
  /** Status of a pod that runs, at 127.0.0.1. */
  running (pod: FakePod, startedAt?: string): void
  ended (pod: FakePod, exitCode: number): void
  remove (name: string): void
  /** Tells watches that it changed. */
  changed (pod: FakePod): void
  /** Breaks every watch. */
  cut (): void
  /** Versions up to now are forgotten: a watch from there is answered 410. */
  compact (): void
  /** A kubeconfig with another name of this host. */
  alsoAt (host: string): Promise<string>
  close (): Promise<void>
}

interface Told {
  readonly version: number
  readonly type: string
  readonly object: object
  readonly labels: Record<string, string>
}

const PODS = /^\/api\/v1\/namespaces\/([^/]+)\/(pods|services|events)(?:\/([^/]+))?(\/log)?$/

/** An API server that keeps pods, by the wire that the driver uses: lists in pages, watches from a version, patches. */
export async function fakeCluster (folder: string, user: object = { token: 'secret' }): Promise<FakeCluster> {
  let [version, compacted, lists, watches] = [10, 0, 0, 0]
  const pods = new Map<string, FakePod>()
  const history: Told[] = []
  const watching = new Map<ServerResponse, string>()
  const requests: ApiRequest[] = []

  const fits = (labels: Record<string, string>, selector: string): boolean => selector.split(',').every(part => {
    const [key = '', value] = part.split('=')
    return key === '' || labels[key] === value
  })
  const tell = (type: string, pod: FakePod): void => {
    pod.metadata.resourceVersion = String(++version)
    const told = { version, type, object: structuredClone(pod), labels: pod.metadata.labels }
    history.push(told)
    const line = `${JSON.stringify({ type, object: told.object })}\n`
    for (const [response, selector] of watching) if (fits(told.labels, selector)) response.write(line)
  }
  const self: FakeCluster = {
    kubeconfig: join(folder, 'kubeconfig'),
    url: '',
    pods,
    requests,
    answers: new Map([['/version', { gitVersion: 'v1.37.0', major: '1', minor: '37' }]]),
    lists: () => lists,
    watches: () => watches,
    judge: () => undefined,
    run: pod => self.running(pod),
    running (pod, startedAt = new Date().toISOString()) {
      pod.status = {
        phase: 'Running',
        podIP: '127.0.0.1',
        hostIP: '127.0.0.1',
        conditions: [{ type: 'PodScheduled', status: 'True' }, { type: 'Ready', status: 'True' }],
        containerStatuses: [{ name: 'engine', image: pod.spec.containers[0]!.image, state: { running: { startedAt } } }]
      }
      tell('MODIFIED', pod)
    },
    ended (pod, exitCode) {
      pod.status = { ...pod.status, phase: 'Failed', containerStatuses: [{ name: 'engine', state: { terminated: { exitCode, reason: 'Error' } } }] }
      tell('MODIFIED', pod)
    },
    remove (name) {
      const pod = pods.get(name)
      if (pod === undefined) return
      pods.delete(name)
      tell('DELETED', pod)
    },
    changed: pod => tell('MODIFIED', pod),
    cut () {
      for (const response of watching.keys()) response.destroy()
      watching.clear()
    },
    compact () {
      compacted = version
      history.length = 0
    },
    alsoAt: () => Promise.reject(new Error('not there yet')),
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => { server.close(resolve) })
    }
  }

  const refuse = (response: ServerResponse, code: number, message: string, reason = ''): void => {
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify({ kind: 'Status', status: 'Failure', code, message, reason }))
  }
  const list = (response: ServerResponse, query: URLSearchParams): void => {
    lists++
    const selector = query.get('labelSelector') ?? ''
    const all = [...pods.values()].filter(pod => fits(pod.metadata.labels, selector))
    const [from, limit] = [Number(query.get('continue') ?? 0), Number(query.get('limit') ?? 500)]
    const next = from + limit < all.length ? String(from + limit) : ''
    response.end(JSON.stringify({ kind: 'PodList', metadata: { resourceVersion: String(version), continue: next }, items: all.slice(from, from + limit) }))
  }
  const watch = (response: ServerResponse, query: URLSearchParams): void => {
    watches++
    const from = Number(query.get('resourceVersion'))
    if (from < compacted) return void response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', metadata: {} } })}\n`)
    const selector = query.get('labelSelector') ?? ''
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    for (const { version: at, type, object, labels } of history) {
      if (at > from && fits(labels, selector)) response.write(`${JSON.stringify({ type, object })}\n`)
    }
    watching.set(response, selector)
    response.on('close', () => watching.delete(response))
  }
  const patch = (pod: FakePod, { spec = {} }: { readonly spec?: Partial<FakePod['spec']> }): void => {
    const isGated = (pod.spec.schedulingGates ?? []).length > 0
    Object.assign(pod.spec, spec)
    tell('MODIFIED', pod)
    if (isGated && (pod.spec.schedulingGates ?? []).length === 0) self.run(pod)
    if (spec.activeDeadlineSeconds !== undefined) self.ended(pod, 143)
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams: query } = new URL(request.url!, 'http://cluster')
    const { method = 'GET', headers: { authorization } } = request
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const asked = { method, path: pathname, query, authorization }
    requests.push(asked)
    const verdict = await self.judge(asked)
    if (verdict === 'lost-before') return void request.socket.destroy()
    if (typeof verdict === 'object') return refuse(response, verdict.status, verdict.message)
    const body = text === '' ? {} : JSON.parse(text) as object
    if (verdict === 'lost-after') response.end = (() => request.socket.destroy()) as never
    const fixed = self.answers.get(pathname)
    if (fixed !== undefined) return void response.end(JSON.stringify(fixed))
    const [, , kind, name, log] = PODS.exec(pathname) ?? []
    if (kind === undefined) return refuse(response, 404, 'the server could not find the requested resource')
    if (kind === 'events') return void response.end(JSON.stringify({ metadata: {}, items: [] }))
    if (method === 'POST') {
      const made = body as FakePod
      made.metadata.uid = `uid-${made.metadata.name}`
      made.status = { phase: 'Pending' }
      if (kind === 'pods') {
        pods.set(made.metadata.name, made)
        tell('ADDED', made)
      }
      return void response.writeHead(201).end(JSON.stringify(made))
    }
    if (name === undefined) return query.get('watch') === 'true' ? watch(response, query) : list(response, query)
    const pod = pods.get(name)
    if (pod === undefined || kind !== 'pods') return refuse(response, 404, `${kind} "${name}" not found`, 'NotFound')
    if (log !== undefined) return void response.end()
    if (method === 'PATCH') patch(pod, body)
    if (method === 'DELETE') self.remove(name)
    response.end(JSON.stringify(pod))
  }
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const configure = async (path: string, server: string): Promise<string> => {
    await writeFile(path, JSON.stringify({
      'apiVersion': 'v1',
      'kind': 'Config',
      'current-context': 'fake',
      'clusters': [{ name: 'c', cluster: { server } }],
      'users': [{ name: 'u', user }],
      'contexts': [{ name: 'fake', context: { cluster: 'c', user: 'u', namespace: 'engines' } }]
    }))
    return path
  }
  await configure(self.kubeconfig, url)
  const alsoAt = (host: string): Promise<string> => configure(join(folder, `kubeconfig-${host}`), url.replace('127.0.0.1', host))
  return Object.assign(self, { url, alsoAt })
}
