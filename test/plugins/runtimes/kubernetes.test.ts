import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { LABEL_INSTANCE, LABEL_PLACE, LABEL_SLOT, type EngineSpec } from '../../../kernel/contract/index.js'
import { tinyContainer } from '../../../kernel/testing/index.js'
import type { ClusterEvent } from '../../../plugins/runtimes/kubernetes/api/objects.js'
import { kubernetesError } from '../../../plugins/runtimes/kubernetes/errors.js'
import { isOutOfTime, nextStep, refusal } from '../../../plugins/runtimes/kubernetes/api/cluster-api.js'
import { podManifest } from '../../../plugins/runtimes/kubernetes/pod/pod-spec.js'
import { notPlaced } from '../../../plugins/runtimes/kubernetes/pod/pod-start.js'
import { inspection, startVerdict } from '../../../plugins/runtimes/kubernetes/pod/pod-state.js'
import { ForwardReach } from '../../../plugins/runtimes/kubernetes/reach/forward-reach.js'
import { stamped } from '../../../plugins/runtimes/kubernetes/pod/pod-logs.js'
import { clusterSettings, isConfigured, podSettings, slotOptionsSchema } from '../../../plugins/runtimes/kubernetes/settings.js'

const labels = { [LABEL_INSTANCE]: 'home', [LABEL_SLOT]: 'chat', [LABEL_PLACE]: 'llm gpu-cuda all' }

function specOf (form: object = {}): EngineSpec {
  const spec = tinyContainer('docker.io/engine:1', { name: 'svc-chat', port: 8081, labels, env: { PRICE: '$(HOME) is $$5' } })
  return { ...spec, form: { ...spec.form, ...form } }
}

function manifest (form: object = {}, cluster: object = {}, options: object = {}): unknown {
  const settings = podSettings(clusterSettings.schema.parse({ kubernetes: cluster }).kubernetes, slotOptionsSchema.parse(options))
  return podManifest({ id: 'svc-chat-0123456789ab', spec: specOf(form), settings, graceS: 7 })
}

t.test('a launch becomes a bare pod that waits at its gate and asks for the GPU of its device', async t => {
  t.match(manifest({ digest: 'sha256:abc' }), {
    spec: {
      schedulingGates: [{ name: 'svc.local/start' }],
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 7,
      containers: [{ image: 'docker.io/engine@sha256:abc', resources: { limits: { 'nvidia.com/gpu': '1' } } }]
    }
  })
})

t.test('the cluster puts nothing in place of dollars in variables', async t => {
  interface Made { spec: { containers: Array<{ env: Array<{ name: string, value: string }> }> } }
  const { spec: { containers: [engine] } } = manifest() as Made
  t.equal(engine!.env.find(({ name }) => name === 'PRICE')!.value, '$$(HOME) is $$$$5')
})

t.test('what the slot says wins over what is said for all', async t => {
  const own = { node_selector: { zone: 'b' }, resources: { limits: { memory: '1Gi' } } }
  const pod = manifest({}, { runtime_class: 'nvidia', node_selector: { zone: 'a' } }, own)
  t.match(pod, { spec: { runtimeClassName: 'nvidia', nodeSelector: { zone: 'b' }, containers: [{ resources: { limits: { memory: '1Gi' } } }] } })
})

t.test('a restricted pod has all that the level restricted of Pod Security asks for, and one that is not has what its image says', async t => {
  const downloads = [{ url: 'https://example.com/a.gguf', path: '/m/a.gguf', sha256: 'a'.repeat(64) }]
  const mounts = [{ source: '/m', target: '/m', readOnly: true }]
  const closed = { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }
  t.match(manifest({ mounts }, { restricted: true, model_storage: 'download' }, { downloads }), {
    spec: {
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      initContainers: [closed],
      containers: [closed]
    }
  })
  t.notMatch(JSON.stringify(manifest({}, { restricted: true }, { restricted: false })), 'securityContext')
})

t.test('models come from a claim, a folder of the node, or downloads', async t => {
  const mounts = [{ source: '/srv/models/chat', target: '/srv/models/chat', readOnly: true }]
  t.match(manifest({ mounts }, { model_storage: 'claim', model_claim: 'models', model_root: '/srv/models' }), {
    spec: {
      containers: [{ volumeMounts: [{ mountPath: '/srv/models/chat', subPath: 'chat', readOnly: true }] }],
      volumes: [{ persistentVolumeClaim: { claimName: 'models' } }]
    }
  })
  t.match(manifest({ mounts }, { model_root: '/srv/models', model_path: '/data' }), { spec: { volumes: [{ hostPath: { path: '/data/chat' } }] } })
  const downloads = [{ url: 'https://example.com/a.gguf', path: '/srv/models/chat/a.gguf', sha256: 'a'.repeat(64) }]
  t.match(manifest({ mounts }, { model_storage: 'download' }, { downloads }), {
    spec: { initContainers: [{ image: 'busybox:1.37', volumeMounts: [{ mountPath: '/srv/models/chat' }] }], volumes: [{ emptyDir: {} }] }
  })
})

t.test('what a pod cannot have is refused before anything is made', async t => {
  const refused = { code: 'kubernetes.unsupported' }
  t.throws(() => manifest({ devices: ['/dev/accel/accel0'] }), refused)
  t.throws(() => manifest({ ulimits: { memlock: { soft: -1, hard: -1 } } }), refused)
  t.throws(() => manifest({ mounts: [{ source: '/home/me/template', target: '/template', readOnly: true }] }), refused)
  t.throws(() => manifest({ mounts: [{ source: '/m', target: '/m', readOnly: true }] }, { model_storage: 'claim' }), refused)
  t.throws(() => manifest({ mounts: [{ source: '/m', target: '/m', readOnly: true }] }, { model_storage: 'download' },
    { downloads: [{ url: 'https://example.com/x', path: '/m/../etc/passwd', sha256: 'a'.repeat(64) }] }), refused)
})

t.test('how far a start is can be read from the pod', async t => {
  const pod = (status: object): Parameters<typeof startVerdict>[0] =>
    ({ metadata: { name: 'p' }, spec: { containers: [{ name: 'engine', image: 'i' }], volumes: [{ persistentVolumeClaim: { claimName: 'models' } }] }, status })
  const waiting = (reason: string, message = ''): object => ({ containerStatuses: [{ name: 'engine', state: { waiting: { reason, message } } }] })
  const download = (message: string): object => ({ initContainerStatuses: [{ name: 'fetch-0', state: { terminated: { exitCode: 1, message } } }] })
  const cases: ReadonlyArray<readonly [object, object]> = [
    [{ containerStatuses: [{ name: 'engine', state: { running: {} } }] }, { kind: 'runs' }],
    [{ phase: 'Failed', containerStatuses: [{ name: 'engine', state: { terminated: { exitCode: 3, reason: 'Error' } } }] }, { kind: 'runs' }],
    [waiting('ErrImagePull', 'dial tcp: connection refused'), { error: { code: 'kubernetes.image_pull' } }],
    [waiting('ErrImagePull', 'manifest unknown'), { error: { code: 'kubernetes.image_absent', heals: false } }],
    [waiting('ErrImagePull', 'pull access denied, insufficient_scope'), { error: { code: 'kubernetes.image_absent', heals: true } }],
    [waiting('CreateContainerConfigError', 'secret "absent" not found'), { error: { code: 'kubernetes.object_missing', message: /"absent" not found; create it/ } }],
    [waiting('CreateContainerConfigError', 'failed to create subPath directory for volumeMount "models-0" of container "engine"'),
      { error: { code: 'kubernetes.volume', message: /; check that model_claim has the folder/ } }],
    [waiting('ContainerCreating'), { kind: 'waits', forCapacity: false }],
    [waiting('CreateContainerError', 'exec: "no-such": not found'), { error: { code: 'kubernetes.not_runnable' } }],
    [waiting('InvalidImageName', 'not a name'), { error: { code: 'kubernetes.image_absent' } }],
    [{ containerStatuses: [{ name: 'engine', state: { terminated: { exitCode: 128, reason: 'StartError', message: 'no such file' } } }] },
      { error: { code: 'kubernetes.not_runnable' } }],
    [{ initContainerStatuses: [{ name: 'get-0', state: { terminated: { exitCode: 1, message: 'HTTP 404' } } }] }, { error: { code: 'kubernetes.volume', heals: false } }],
    [download('wget: can\'t connect to remote host (10.0.0.1): Connection refused'), { error: { heals: true, message: /it is retried/ } }],
    [download('wget: bad address \'models.example.com\''), { error: { heals: true } }],
    [download('wget: server returned error: HTTP/1.1 503 Service Unavailable'), { error: { heals: true } }],
    [download('wget: server returned error: HTTP/1.1 404 Not Found'), { error: { heals: false, message: /check the url and sha256/ } }],
    [download('sha256sum: WARNING: 1 of 1 computed checksums did NOT match'), { error: { heals: false } }],
    [{ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'persistentvolumeclaim "models" not found' }] },
      { error: { code: 'kubernetes.claim_missing' } }],
    [{ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }, { kind: 'waits', forCapacity: true, line: 'waiting for the scheduler, and a volume for claim models' }],
    [{ phase: 'Failed', reason: 'UnexpectedAdmissionError' }, { error: { code: 'kubernetes.evicted' } }],
    [{ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }] },
      { kind: 'waits', forCapacity: true, line: 'waiting for capacity: 0/3 nodes are available' }]
  ]
  for (const [status, expected] of cases) {
    const verdict = startVerdict(pod(status))
    t.match(verdict, expected)
    if (verdict.kind === 'fails') t.match(verdict.error.message, /; \w.* \w/, 'a failure says what to do next')
  }
})

t.test('an engine that its node killed for want of memory is told from one that ended by itself', async t => {
  const kept = { id: 'svc-chat-0123456789ab', name: 'svc-chat', port: 8081, ports: {}, labels }
  const ended = (terminated: object): ReturnType<typeof inspection> => inspection({
    metadata: { name: kept.id },
    spec: { containers: [{ name: 'engine', image: 'engine:1' }] },
    status: { phase: 'Failed', containerStatuses: [{ name: 'engine', state: { terminated: terminated as { exitCode: number } } }] }
  }, kept, null)
  t.match(ended({ exitCode: 137, reason: 'OOMKilled', startedAt: '2026-11-27T01:02:03Z' }),
    { state: 'exited', exitCode: 137, oomKilled: true, address: null, startedAt: Date.parse('2026-11-27T01:02:03Z') })
  t.match(ended({ exitCode: 137, reason: 'Error' }), { state: 'exited', exitCode: 137, oomKilled: false, startedAt: null })
})

t.test('each failure of the cluster is one that may pass, or one that stays until something is changed', async t => {
  const heals = Object.entries(kubernetesError.rows).map(([code, row]) => [code.replace('kubernetes.', ''), row.heals === true])
  t.same(Object.fromEntries(heals), {
    config: false,
    credentials: true,
    unauthorized: true,
    forbidden: true,
    untrusted: true,
    unavailable: true,
    namespace_missing: true,
    refused: false,
    unsupported: false,
    no_capacity: true,
    claim_pending: true,
    claim_missing: true,
    image_absent: false,
    image_pull: true,
    object_missing: true,
    volume: true,
    not_runnable: false,
    evicted: true
  })
})

t.test('whatever an API server refuses is told with what to do next', async t => {
  const call = { method: 'POST', path: '/api/v1/namespaces/n/pods' } as const
  const refusals: ReadonlyArray<readonly [status: number, message: string, code: string]> = [
    [400, 'the body is not right', 'refused'],
    [400, 'admission webhook "team.example.com" denied the request: no team', 'refused'],
    [401, 'Unauthorized', 'unauthorized'],
    [403, 'pods is forbidden: User "u" cannot create resource "pods"', 'forbidden'],
    [403, 'pods "a" is forbidden: unable to create new content in namespace n because it is being terminated', 'namespace_missing'],
    [403, 'pods "a" is forbidden: exceeded quota: gpus', 'no_capacity'],
    [403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest"', 'refused'],
    [403, 'pods "a" is forbidden: not on a Friday', 'refused'],
    [403, 'pods "a" is forbidden: maximum memory usage per Container is 64Mi, but limit is 1Gi', 'refused'],
    [403, 'pods "a" is forbidden: failed quota: q: must specify limits.memory for: engine', 'refused'],
    [403, 'admission webhook "team.example.com" denied the request: no team', 'refused'],
    [403, 'pods "a" is forbidden: pod rejected: RuntimeClass "nvidia" not found', 'object_missing'],
    [403, 'pods "a" is forbidden: no PriorityClass with name high was found', 'object_missing'],
    [403, 'pods "a" is forbidden: error looking up service account n/default: serviceaccount "default" not found', 'object_missing'],
    [404, 'namespaces "n" not found', 'namespace_missing'],
    [409, 'object is being deleted', 'refused'],
    [422, 'pods "a" is forbidden: ValidatingAdmissionPolicy \'p\' with binding \'p\' denied request: no team', 'refused'],
    [422, 'Pod "a" is invalid: spec.containers[0].resources.limits[cpu]: Invalid value', 'refused'],
    [429, '', 'unavailable'],
    [500, 'etcdserver: request timed out', 'unavailable'],
    [500, 'Internal error occurred: failed calling webhook "team.example.com": connection refused', 'unavailable'],
    [503, '', 'unavailable']
  ]
  for (const [status, message, code] of refusals) {
    const error = refusal(status, { message }, call, 'n')
    t.match(error, { code: `kubernetes.${code}`, details: { status } }, `${status} ${message}`)
    t.match(error.message, /; \S.* \w/)
    if (/denied|maximum|Friday/.test(message)) t.match(error.message, /or the rule of the cluster/, 'a rule is told from what the API cannot take')
  }
})

t.test('a pod that got no node in time is told what to change: what it asks for, the nodes that it names, or its claim', async t => {
  const cases: ReadonlyArray<readonly [said: string, code: string, next: RegExp]> = [
    ['', 'no_capacity', /other pods are ahead.*; unload a slot/],
    ['waiting for capacity: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s).', 'no_capacity', /; unload a slot/],
    ['waiting for capacity: 0/2 nodes are available: 2 node(s) didn\'t match Pod\'s node affinity/selector.', 'no_capacity', /; no node is one that the slot may use: check node_selector/],
    ['waiting for capacity: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.', 'claim_pending', /; `kubectl describe pvc`/],
    ['waiting for the scheduler, and a volume for claim models', 'claim_pending', /claim models; `kubectl describe pvc`/]
  ]
  for (const [said, code, next] of cases) t.match(notPlaced(5000, said), { code: `kubernetes.${code}`, heals: true, message: next })
})

t.test('a node that cannot make the pod is told at once where its runtime class is to blame, and else after some tries', async t => {
  const pod: Parameters<typeof startVerdict>[0] = {
    metadata: { name: 'p' },
    spec: { containers: [] },
    status: { containerStatuses: [{ name: 'engine', state: { waiting: { reason: 'ContainerCreating' } } }] }
  }
  const failed = (message: string, count = 1): ClusterEvent => ({ metadata: { name: 'e' }, reason: 'FailedCreatePodSandBox', message, count })
  t.match(startVerdict(pod, [failed('no runtime for "nvidia" is configured')]),
    { error: { code: 'kubernetes.not_runnable', heals: true, message: /no runtime for "nvidia".*; install what the runtime class names/ } })
  t.match(startVerdict(pod, [failed('network "a" failed', 3)]), { kind: 'waits', forCapacity: false, line: 'waiting for the node: network "a" failed' })
  t.match(startVerdict(pod, [failed('network "a" failed', 3), failed('network "b" failed')]),
    { error: { code: 'kubernetes.not_runnable', heals: true, message: /network "b" failed; check the network/ } })
})

t.test('an image that is pulled without the login that the slot names fails for the Secret, which may be made', async t => {
  const pod: Parameters<typeof startVerdict>[0] = {
    metadata: { name: 'p' },
    spec: { containers: [], imagePullSecrets: [{ name: 'absent' }] },
    status: { containerStatuses: [{ name: 'engine', state: { waiting: { reason: 'ErrImagePull', message: '401 unauthorized' } } }] }
  }
  const event = { metadata: { name: 'e' }, reason: 'FailedToRetrieveImagePullSecret', message: 'Unable to retrieve some image pull secrets (absent)' }
  t.match(startVerdict(pod), { error: { code: 'kubernetes.image_absent', heals: true, message: /renew the login/ } }, 'a login may be renewed')
  t.match(startVerdict(pod, [event]), { error: { code: 'kubernetes.object_missing', heals: true, message: /401 unauthorized: .*\(absent\); make the Secret/ } })
})

t.test('times of log lines compare as text, whatever their fraction', async t => {
  t.strictSame(stamped('2026-11-27T01:02:03.5Z hello'), { time: '2026-11-27T01:02:03.500000000Z', text: 'hello' })
  t.strictSame(stamped('2026-11-27T03:02:03.25+02:00 hi'), { time: '2026-11-27T01:02:03.250000000Z', text: 'hi' })
  t.strictSame(stamped('no time'), { time: null, text: 'no time' })
})

t.test('a certificate that is not valid yet, or no longer, leads to the clock', async t => {
  for (const code of ['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED']) t.match(nextStep(code), /the clock of this machine/)
  t.strictSame(['CERT_NOT_YET_VALID', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'].map(isOutOfTime), [true, false], 'that heals by itself')
  t.match(nextStep('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), /certificate-authority/)
})

t.test('no cluster is asked before svc.toml says something of one', async t => {
  const of = (cluster: object): boolean => isConfigured(clusterSettings.schema.parse({ kubernetes: cluster }).kubernetes)
  t.strictSame([of({}), of({ context: 'lab' })], [false, true])
})

t.test('a port that an engine is forwarded from is free once the engine has ended, also where a look was just opening it', async t => {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  const reach = new ForwardReach({} as never, { warn: () => {} } as never)
  const launch = { id: 'svc-chat-0123456789ab', name: 'svc-chat', port, ports: {}, labels }
  const pod: Parameters<typeof startVerdict>[0] = { metadata: { name: launch.id }, spec: { containers: [] } }
  const looked = reach.address(pod, launch)
  await reach.drop(launch.id)
  await looked
  await reach.assertFree(launch)
  t.equal(await reach.address(pod, launch), null, 'a look that saw it before it ended does not open it again')
  await reach.assertFree(launch)
  await reach.open(pod, launch)
  t.match(await reach.address(pod, launch), { port }, 'a start does')
  await reach.close()
})
