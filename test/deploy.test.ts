import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'smol-toml'
import { parseAllDocuments } from 'yaml'
import { svcConfigSchema } from '../kernel/contract/index.js'
import { clusterSettings } from '../plugins/runtimes/kubernetes/settings.js'
import { clusterManifest } from '../plugins/runtimes/kubernetes/survey/manifest.js'
import { root } from './repository.js'

interface KubernetesObject { readonly kind: string, readonly [key: string]: unknown }

const read = (file: string): string => readFileSync(join(root, 'deploy', file), 'utf8')
const objects = (text: string): readonly KubernetesObject[] =>
  parseAllDocuments(text).map(document => document.toJS() as KubernetesObject)
const [deployment] = objects(read('gateway.yaml')) as unknown as [{
  spec: {
    replicas: number
    template: { spec: {
      serviceAccountName: string
      terminationGracePeriodSeconds: number
      securityContext: object
      initContainers: object[]
      containers: Array<{ livenessProbe?: object, volumeMounts: Array<{ name: string, mountPath: string }> }>
      volumes: Array<{ name: string, persistentVolumeClaim?: { claimName: string } }>
    } }
  }
}]
const pod = deployment.spec.template.spec

t.test('the account of the manifests has the rights that `svc cluster manifest` prints, and no others', async t => {
  const { kubernetes: settings } = clusterSettings.schema.parse(parse(read('svc.toml')).runtime)
  const printed = objects(clusterManifest(settings, 'svc')).filter(({ kind }) => kind !== 'Namespace')
  const isClusterWide = ({ kind }: KubernetesObject): boolean => kind.startsWith('Cluster')
  t.strictSame(objects(read('account.yaml')), printed.filter(object => !isClusterWide(object)))
  t.strictSame(objects(read('nodes.yaml')), printed.filter(isClusterWide))
  const { metadata } = printed.find(({ kind }) => kind === 'ServiceAccount') as unknown as { metadata: { name: string } }
  t.equal(pod.serviceAccountName, metadata.name)
})

t.test('the pod of the gateway has longer to end than the streams in it', async t => {
  const { server } = svcConfigSchema.parse({})
  t.ok(pod.terminationGracePeriodSeconds >= server.shutdown_grace_s * 2)
})

t.test('nothing in the pod of the gateway is root, writes its root or has capabilities', async t => {
  t.match(pod.securityContext, { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } })
  for (const container of [...pod.initContainers, ...pod.containers]) {
    t.match(container, { securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } } })
  }
  t.notOk(pod.containers.some(({ livenessProbe }) => livenessProbe !== undefined), 'and one that stands by is not killed for it')
})

t.test('engines mount the claim that the gateway keeps its models on', async t => {
  const { models: { store }, runtime } = parse(read('svc.toml')) as { models: { store: string }, runtime: { kubernetes: object } }
  const mount = pod.containers[0]!.volumeMounts.find(({ mountPath }) => mountPath === store)
  const claim = pod.volumes.find(({ name }) => name === mount!.name)!.persistentVolumeClaim!.claimName
  t.match(runtime.kubernetes, { model_storage: 'claim', model_claim: claim, model_root: store, restricted: true })
  t.ok(objects(read('claims.yaml')).some(({ metadata }) => (metadata as { name: string }).name === claim))
})

t.test('the manifests take the image of this version', async t => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const [{ images }] = objects(read('kustomization.yaml')) as unknown as [{ images: Array<{ newTag: string }> }]
  t.equal(images[0]!.newTag, version)
})
