import type { Test } from 'tap'
import { api, chat } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { apply, clusterHome, loadError, NAMESPACE, podsOf, slotFile, type Refused } from './slots.js'
import type { Cluster } from '../support/cluster.js'

const RESOURCES = 'resources = { requests = { cpu = "50m", memory = "32Mi" } }'
const asking = (resources: string): string => slotFile().replace(RESOURCES, `resources = { ${resources} }`)
const claiming = (claim: string): string => slotFile({ options: `model_storage = "claim"\nmodel_claim = "${claim}"\n` })
const claim = (name: string, storageClassName: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: NAMESPACE },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } }
})

/** What the API server, a rule of the cluster or the scheduler has against a pod. */
export async function refuses (t: Test, here: Cluster): Promise<void> {
  const { kubectl } = here
  const isOurs = here.folder !== null
  const { start } = await clusterHome(t, here, {
    'agent': slotFile(),
    'half-gpu': asking('limits = { "nvidia.com/gpu" = "0.5" }'),
    'too-much': asking('limits = { memory = "2Ti" }, requests = { cpu = "50m", memory = "32Mi" }'),
    'no-class': slotFile({ options: 'runtime_class = "absent"\n' }),
    ...isOurs ? { 'no-runtime': slotFile({ options: 'runtime_class = "svc-ring-absent"\n' }), 'late': claiming('late') } : {},
    'no-login': slotFile({ image: '127.0.0.1:5999/nothing/here:1', options: 'registry_logins = ["absent"]\n' }),
    'no-node': slotFile({ options: 'node_selector = { "svc.test/no" = "such" }\n' }),
    'unbound': claiming('unbound')
  }, 'capacity_timeout_s = 5\n')
  const folder = t.testdir()
  await apply(here, folder, claim('unbound', ''), ...isOurs ? [runtimeClass, storageClass, claim('late', storageClass.metadata.name)] : [])
  t.teardown(() => kubectl('-n', NAMESPACE, 'delete', 'pvc,quota,limitrange', '--all', '--wait=false').catch(() => {}))
  if (isOurs) t.teardown(() => kubectl('delete', 'storageclass/svc-ring-late', 'runtimeclass/svc-ring-absent').catch(() => {}))
  const gateway = await start()
  const load = (name: string): Promise<Refused['error']> => loadError(gateway, name)
  /** Once a rule is in force, and the one before it no more, which takes the API server a moment. */
  const refused = (rule: RegExp): Promise<Refused['error']> => eventually(`${rule.source} is in force`, async () => {
    const error = await load('agent') as Refused['error'] | undefined
    if (error === undefined) await api(gateway, 'POST', '/api/slots/agent/unload', { force: true })
    return error !== undefined && rule.test(error.message) ? error : null
  })

  const expected: Readonly<Record<string, object>> = {
    'half-gpu': { details: { reason: 'kubernetes.refused' }, message: /limits\[nvidia\.com\/gpu\].* must be an integer.*; change what it names/ },
    'no-class': { details: { reason: 'kubernetes.object_missing' }, message: /RuntimeClass "absent" not found; create what it names, or change runtime_class/ },
    'no-login': { details: { reason: 'kubernetes.object_missing' }, message: /127\.0\.0\.1:5999.*\(absent\).*; make the Secret/ },
    'no-node': { details: { reason: 'kubernetes.no_capacity' }, message: /didn't match Pod's node affinity\/selector.*; no node is one.*check node_selector/ },
    'unbound': { details: { reason: 'kubernetes.claim_pending' }, message: /unbound immediate PersistentVolumeClaims.*; `kubectl describe pvc`/ },
    ...isOurs ? { 'no-runtime': { details: { reason: 'kubernetes.not_runnable' }, message: /the node cannot make the pod: .*"svc-ring-absent".*; install what the runtime class names/ } } : {},
    ...isOurs ? { late: { details: { reason: 'kubernetes.claim_pending' }, message: /a volume for claim late; `kubectl describe pvc`/ } } : {}
  }
  await Promise.all(Object.entries(expected).map(async ([name, error]) => t.match(await load(name), error, name)))

  await apply(here, folder, {
    apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'ring', namespace: NAMESPACE }, spec: { limits: [{ type: 'Container', max: { memory: '1Ti' } }] }
  })
  t.match(await load('too-much'), { details: { reason: 'kubernetes.refused' }, message: /maximum memory usage per Container is 1Ti.*; change what it names in `resources`.*or the rule of the cluster/ })
  await kubectl('-n', NAMESPACE, 'delete', 'limitrange', 'ring')

  await apply(here, folder, { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'ring', namespace: NAMESPACE }, spec: { hard: { 'requests.cpu': '10m' } } })
  t.match(await refused(/exceeded quota: ring/), { details: { reason: 'kubernetes.no_capacity' }, message: /exceeded quota: ring, requested: requests\.cpu=50m.*; unload a slot.*or raise it/ })
  await kubectl('-n', NAMESPACE, 'delete', 'quota', 'ring')
  await eventually('the next requests bring it up, without a load by hand', async () => (await chat(gateway.url, { max_tokens: 5 })).status === 200)
  t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })

  if (isOurs) {
    t.teardown(() => kubectl('delete', 'validatingadmissionpolicy/svc-ring', 'validatingadmissionpolicybinding/svc-ring', '--ignore-not-found').catch(() => {}))
    for (const operation of ['CREATE', 'UPDATE']) {
      await apply(here, folder, policy(operation), binding)
      t.match(await refused(new RegExp(`no ${operation} today`)), { details: { reason: 'kubernetes.refused' }, message: /; change what it names.*or the rule of the cluster/ })
      await kubectl('delete', 'validatingadmissionpolicybinding', 'svc-ring')
    }
  }
  t.strictSame(await podsOf(here), [], 'nothing is left of them')
  if (isOurs) {
    await eventually('the rule is in force no more', async () => await load('agent') === undefined)
    t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
}

const runtimeClass = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'svc-ring-absent' }, handler: 'svc-ring-absent' }

/** Volumes for it are made, by a program that there is not, only once a pod is to have them. */
const storageClass = {
  apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'svc-ring-late' }, provisioner: 'svc.test/none', volumeBindingMode: 'WaitForFirstConsumer'
}

const policy = (operation: string): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'svc-ring' },
  spec: {
    matchConstraints: { resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: [operation], resources: ['pods'] }] },
    validations: [{ expression: 'false', message: `no ${operation} today` }]
  }
})

const binding = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'svc-ring' },
  spec: { policyName: 'svc-ring', validationActions: ['Deny'], matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } } } }
}
