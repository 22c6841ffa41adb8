import t, { type Test } from 'tap'
import { surveyCluster, type ClusterSurvey, type SurveyedSlot } from '../../../plugins/runtimes/kubernetes/survey/survey.js'
import { clusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import { realClock } from '../../kernel/runtime/support.js'
import { clusterOf } from './driven-cluster.js'
import type { FakeCluster } from './fake-cluster.js'

const slot = (name: string, device: string, options: object = {}): SurveyedSlot => ({ name, device, options })

async function surveyed (
  t: Test, change: (cluster: FakeCluster) => void, said: object, slots: readonly SurveyedSlot[]
): Promise<ClusterSurvey> {
  const cluster = await clusterOf(t)
  cluster.answers.set('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { status: { allowed: true } })
  cluster.answers.set('/api/v1/nodes', { metadata: {}, items: [{ status: { allocatable: { 'cpu': '8', 'nvidia.com/gpu': '2', 'nvidia.com/mig-1g.10gb': '0' } } }] })
  cluster.answers.set('/api/v1/namespaces/engines/persistentvolumeclaims/models', { status: { phase: 'Bound' } })
  change(cluster)
  const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig: cluster.kubeconfig, ...said } })
  return await surveyCluster({ settings, slots, places: [], env: process.env, clock: realClock })
}

t.test('a cluster that has all that its slots ask for has no problem', async t => {
  const survey = await surveyed(t, () => {}, { model_storage: 'claim', model_claim: 'models' }, [slot('chat', 'gpu-cuda'), slot('small', 'cpu')])
  t.match(survey, { version: 'v1.37.0', namespace: 'engines', problems: { length: 0 }, gpus: { 'nvidia.com/gpu': 2 } })
  t.strictSame(survey.doubts.filter(doubt => !doubt.includes('not encrypted')), [])
})

t.test('an old version is a doubt', async t => {
  const { doubts } = await surveyed(t, ({ answers }) => answers.set('/version', { gitVersion: 'v1.27.3+k3s1', minor: '27+' }), {}, [])
  t.match(doubts, [/Kubernetes v1\.27\.3\+k3s1 is older than 1\.30, the oldest tested version/])
})

t.test('claims that are not there are named with what names them, those of slots too', async t => {
  const { problems } = await surveyed(t, () => {}, { model_storage: 'claim', model_claim: 'absent' }, [
    slot('found', 'cpu', { model_claim: 'models' }), slot('lost', 'cpu', { model_claim: 'gone' }), slot('again', 'cpu', { model_claim: 'gone' }),
    slot('local', 'cpu', { model_storage: 'host-path', model_claim: 'unused' })
  ])
  t.strictSame(problems, [
    'there is no claim \'absent\' in namespace \'engines\' (model_claim); create it, or name one of those that `kubectl -n engines get pvc` lists',
    'there is no claim \'gone\' in namespace \'engines\' (model_claim of slot \'lost\'); create it, or name one of those that `kubectl -n engines get pvc` lists'
  ])
  const unbound = await surveyed(t, ({ answers }) => answers.set('/api/v1/namespaces/engines/persistentvolumeclaims/late', { status: { phase: 'Pending' } }), { model_storage: 'claim', model_claim: 'late' }, [])
  t.match(unbound, { problems: { length: 0 }, doubts: [/^claim 'late' in namespace 'engines' is bound to no volume yet \(Pending; model_claim\): `kubectl describe pvc late`/] })
  const unnamed = await surveyed(t, () => {}, {}, [slot('chat', 'cpu', { model_storage: 'claim' })])
  t.strictSame(unnamed.problems, ['model_storage is claim but model_claim of slot \'chat\' is not set'])
})

t.test('what no node has is a doubt, by the device of a slot or by the resources that it names', async t => {
  const { doubts } = await surveyed(t, () => {}, {}, [
    slot('chat', 'gpu-rocm'),
    slot('part', 'gpu-cuda', { resources: { limits: { 'nvidia.com/mig-1g.10gb': '1', 'memory': '8Gi' } } }),
    slot('whole', 'gpu-cuda')
  ])
  t.strictSame(doubts.filter(doubt => doubt.startsWith('no node')), [
    'no node has amd.com/gpu, which slot \'chat\' requests; install its device plugin',
    'no node has nvidia.com/mig-1g.10gb, which slot \'part\' requests; install its device plugin'
  ])
  const blind = await surveyed(t, cluster => {
    cluster.judge = ({ path }) => path === '/api/v1/nodes' ? { status: 403, message: 'nodes is forbidden: User "u" cannot list resource "nodes"' } : undefined
  }, {}, [slot('chat', 'gpu-rocm')])
  t.match(blind, { gpus: null, problems: { length: 0 } }, 'an account that may not see nodes is none')
})

t.test('a right that is missing is a problem, with what it is for', async t => {
  const { problems } = await surveyed(t, ({ answers }) => answers.set('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { status: { allowed: false } }), { reach: 'node-port' }, [])
  t.match(problems, [/^the account may not get pods \(engines\), .*get pods\/log \(logs of engines\), .*create services \(node ports of engines\) in namespace 'engines'$/])
})
