import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../../cli/support.js'
import { api, chat } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { apply, clusterHome, loadError, NAMESPACE, podsOf, row, slotFile } from './slots.js'
import type { Cluster } from '../support/cluster.js'

const ACCOUNT = 'svc-gateway'
/** Of the whole cluster. */
const NODES = 'svc-gateway-nodes'

/** The account that `svc cluster manifest` makes, with just its rights: they go and come, and its token changes. */
export async function changesHands (t: Test, here: Cluster): Promise<void> {
  const folder = t.testdir()
  const manifest = join(folder, 'manifest.yaml')
  // without a namespace, so the same for all gateways of a cluster
  const shared = await here.kubectl('get', 'clusterrole', NODES, '--ignore-not-found', '-o', 'name')
  const documents = (await run(['cluster', 'manifest', '--namespace', NAMESPACE])).stdout.split(/^---$/m)
  writeFileSync(manifest, documents.filter(document => shared === '' || !/^kind: ClusterRole$/m.test(document)).join('---'))
  await here.kubectl('apply', '-f', manifest)
  await eventually('the cluster knows its rights', async () => await may(here, 'create') && await may(here, 'list'))
  // what is in the namespace goes with it
  const ours = [`clusterrolebinding/${NODES}-${NAMESPACE}`, ...shared === '' ? [`clusterrole/${NODES}`] : []]
  t.teardown(() => here.kubectl('delete', ...ours, '--ignore-not-found').catch(() => {}))
  const tokenFile = join(folder, 'token')
  const command = join(folder, 'get-token')
  writeFileSync(command, `#!/bin/sh\necho asked >> ${command}.runs\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat ${tokenFile})"\n`)
  chmodSync(command, 0o755)
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never', provideClusterInfo: true }
  const users = { 'a file with a token': { tokenFile }, 'a command': { exec } }
  for (const [name, user] of Object.entries(users)) await row(t, here, `a token that is replaced, from ${name}`, t => rotates(t, here, user, tokenFile))
  t.ok(readFileSync(`${command}.runs`, 'utf8').split('\n').length - 1 <= 6, 'the command ran for each token, and not for each request')
  await row(t, here, 'rights that are taken away and given back', t => losesRights(t, here, { tokenFile }, manifest))
}

/** Whether the account has a right to pods; throws where the cluster does not say. */
async function may ({ kubectl }: Cluster, verb: string): Promise<boolean> {
  const answer = kubectl('auth', 'can-i', verb, 'pods', '-n', NAMESPACE, `--as=system:serviceaccount:${NAMESPACE}:${ACCOUNT}`)
  // it exits with 1 for a no
  const said = await answer.catch((error: unknown) => (error as { readonly stdout?: string }).stdout ?? '')
  if (!/^(?:yes|no)/.test(said)) throw new Error(`kubectl auth can-i: ${said}`)
  return said.startsWith('yes')
}

/** A token that ends with its Secret. */
async function boundToken (t: Test, here: Cluster, name: string): Promise<string> {
  await apply(here, t.testdir(), { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: NAMESPACE } })
  return (await here.kubectl('-n', NAMESPACE, 'create', 'token', ACCOUNT, '--bound-object-kind=Secret', `--bound-object-name=${name}`)).trim()
}

/** The cluster of the administrator's kubeconfig, and another user. */
async function kubeconfigOf (t: Test, here: Cluster, user: object): Promise<string> {
  const admin = JSON.parse(await here.kubectl('config', 'view', '--raw', '-o', 'json')) as { users: object[], contexts: Array<{ context: { user: string } }> }
  const path = join(t.testdir({ kubeconfig: '' }), 'kubeconfig')
  writeFileSync(path, JSON.stringify({ ...admin, users: [{ name: admin.contexts[0]!.context.user, user }] }))
  return path
}

async function rotates (t: Test, here: Cluster, user: object, tokenFile: string): Promise<void> {
  writeFileSync(tokenFile, await boundToken(t, here, 'first'))
  const kubeconfig = await kubeconfigOf(t, here, user)
  const { start } = await clusterHome(t, { kubeconfig }, { agent: slotFile(), other: slotFile() })
  const gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  writeFileSync(tokenFile, await boundToken(t, here, 'second'))
  await here.kubectl('-n', NAMESPACE, 'delete', 'secret', 'first')
  await eventually('the first is not accepted any more', async () => {
    const answer = await here.kubectl('-n', NAMESPACE, 'get', 'secrets', '-o', 'name')
    return !answer.includes('first')
  })
  t.match(await api(gateway, 'POST', '/api/slots/other/load', {}), { status: 200 }, 'the next launch shows the new one')
  t.match(await chat(gateway.url, { model: 'agent', max_tokens: 5 }), { status: 200 })
  for (const name of ['agent', 'other']) t.match(await api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  await here.kubectl('-n', NAMESPACE, 'delete', 'secret', 'second')
  t.equal(await gateway.kill('SIGTERM'), 0)
  for (const line of gateway.log().split('\n')) t.notMatch(line, /eyJ/, 'no token is logged')
}

async function losesRights (t: Test, here: Cluster, user: object, manifest: string): Promise<void> {
  writeFileSync((user as { tokenFile: string }).tokenFile, await boundToken(t, here, 'third'))
  const kubeconfig = await kubeconfigOf(t, here, user)
  const { home, start } = await clusterHome(t, { kubeconfig }, { agent: slotFile(), other: slotFile() })
  const gateway = await start()
  const doctor = async (): Promise<string> => (await run(['doctor', '--home', home], { columns: 80 })).stdout
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  t.notMatch(await doctor(), /the account may not/)
  await here.kubectl('-n', NAMESPACE, 'delete', 'rolebinding', ACCOUNT)
  await eventually('the cluster refuses', async () => !await may(here, 'create'))
  t.match(await loadError(gateway, 'other'), { message: /cannot (?:create|list) resource "pods".*`svc cluster manifest`/, details: { reason: 'kubernetes.forbidden' } })
  t.match(await doctor(), /the account may not get pods|may not.*create pods/)
  t.match(await chat(gateway.url, { model: 'agent', max_tokens: 5 }), { status: 200 }, 'what runs goes on')
  await here.kubectl('apply', '-f', manifest)
  await eventually('the next requests bring it up, without a load by hand', async () => (await chat(gateway.url, { model: 'other', max_tokens: 5 })).status === 200)
  for (const name of ['agent', 'other']) t.match(await api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}
