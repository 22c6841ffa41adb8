import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { bigramGguf } from '../../../plugins/services/demo/bigram-gguf.js'
import { api, chat, writeHome } from '../../e2e/live-gateway.js'
import { pushImage } from '../../kernel/runtime/registry-image.js'
import { apply, clusterHome, loadError, NAMESPACE, podsOf, slotFile } from './slots.js'
import type { Cluster } from '../support/cluster.js'

/** This machine's end of the bridge that pods are at: all that they reach. */
const HOST = '10.244.7.1'
const LOGIN = `Basic ${Buffer.from('me:secret').toString('base64')}`

export async function stores (t: Test, here: Cluster): Promise<void> {
  const model = bigramGguf()
  const asked: string[] = []
  const files = await serve(t, HOST, (request, response) => {
    asked.push(request.url!)
    response.end(model)
  })
  const registry = process.env.SVC_TEST_REGISTRY
  const guarded = registry === undefined ? '' : await serve(t, '127.0.0.1', ({ method, url, headers }, response) => {
    if (headers.authorization !== LOGIN) return void response.writeHead(401, { 'www-authenticate': 'Basic realm="ring"' }).end()
    void fetch(`http://${registry}${url}`, { method: method!, headers: headers.accept === undefined ? {} : { accept: headers.accept } }).then(async answer => {
      response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => /^(?:content-type|docker-)/.test(name))))
      response.end(Buffer.from(await answer.arrayBuffer()))
    }).catch(() => response.destroy())
  })
  if (registry !== undefined) await pushImage(registry, 'svc-ring/private', '1', [64])
  const fetched = (path: string, sha256: string): string =>
    `model_storage = "download"\ndownloads = [{ url = "http://${files}/demo.gguf", path = "${path}", sha256 = "${sha256}" }]\n`
  const { home, start } = await clusterHome(t, here, {}, 'download_image = "svc-test/node:1"\n')
  const models = `${home}/var/lib/svc/models`
  const slots: Record<string, string> = {
    'claimed': slotFile({ options: `model_storage = "claim"\nmodel_claim = "models"\nmodel_root = "${models}"\n` }),
    'fetched': slotFile({ options: fetched(`${models}/demo.gguf`, createHash('sha256').update(model).digest('hex')) }),
    'wrong': slotFile({ options: fetched(`${models}/demo.gguf`, 'a'.repeat(64)) }),
    'locked-out': slotFile({ image: `${guarded}/svc-ring/private:1` }),
    'let-in': slotFile({ image: `${guarded}/svc-ring/private:1`, options: 'registry_logins = ["ring-login"]\n' })
  }
  const dockerconfigjson = { auths: { [guarded]: { username: 'me', password: 'secret', auth: LOGIN.slice(6) } } }
  await apply(here, t.testdir(), {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'ring-models' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadOnlyMany'], storageClassName: '', hostPath: { path: models }, claimRef: { namespace: NAMESPACE, name: 'models' } }
  }, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'models', namespace: NAMESPACE },
    spec: { accessModes: ['ReadOnlyMany'], storageClassName: '', volumeName: 'ring-models', resources: { requests: { storage: '1Gi' } } }
  }, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'ring-login', namespace: NAMESPACE },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify(dockerconfigjson)).toString('base64') }
  })
  t.teardown(() => here.kubectl('delete', 'pv', 'ring-models', '--wait=false').catch(() => {}))
  const written = Object.entries(slots).map(([name, text]) => [`etc/svc/slots/${name}.toml`, text])
  await writeHome(home, Object.fromEntries(written) as Record<string, string>)
  const gateway = await start()
  for (const model of ['claimed', 'fetched']) {
    const answer = await (await chat(gateway.url, { model, max_tokens: 5 })).json()
    t.match(answer, { choices: [{ message: { content: String } }] }, model)
  }
  t.strictSame(asked, ['/demo.gguf'])
  t.match(await here.kubectl('-n', NAMESPACE, 'get', 'pvc', 'models', '-o', 'jsonpath={.status.phase}'), 'Bound')
  t.match(await loadError(gateway, 'wrong'), { message: /a download failed \(fetch-0, code 1\): .*; check the url and sha256 in the downloads of the slot/, details: { reason: 'kubernetes.volume' } })
  if (registry !== undefined) {
    t.match(await loadError(gateway, 'locked-out'), { message: /registry_logins/, details: { reason: 'kubernetes.image_absent' } })
    // it has nothing that could run: that it says so is what shows that it was pulled
    t.match(await loadError(gateway, 'let-in'), { details: { reason: 'kubernetes.not_runnable' } })
  }
  for (const name of ['claimed', 'fetched']) t.match(await api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.match(await here.kubectl('-n', NAMESPACE, 'get', 'pvc', 'models', '-o', 'jsonpath={.status.phase}'), 'Bound', 'the claim is left')
  t.ok(readFileSync(`${models}/demo.gguf`).equals(model))
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function serve (t: Test, host: string, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${host}:${(server.address() as AddressInfo).port}`
}
