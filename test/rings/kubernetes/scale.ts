import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime } from '../../../kernel/contract/provider/engine-runtime.js'
import { tinyContainer } from '../../../kernel/testing/index.js'
import { openKubernetes } from '../../../plugins/runtimes/kubernetes/open.js'
import { clusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import { eventually, realClock, recordingLogger } from '../../kernel/runtime/support.js'
import { pathOf, type Cluster } from '../support/cluster.js'
import { apply, ENGINES, NAMESPACE } from './slots.js'

const isFull = process.env.SVC_TEST_KUBERNETES_SCALE === 'full'
const SIZE = isFull
  ? { nodes: 200, slots: 500, few: 250, pods: 2_000, waiting: 100 }
  : { nodes: 40, slots: 60, few: 30, pods: 240, waiting: 20 }
const HOME = 'a home of many'
const AT_ONCE = 16
const signal = new AbortController().signal

/** Nodes that kwok plays, on which every pod runs at once and nothing can be reached: the driver alone is looked at. */
export async function grows (t: Test, here: Cluster): Promise<void> {
  const tools = process.env.SVC_TEST_KUBERNETES_TOOLS!
  await promisify(execFile)(join(tools, '6-kwok.sh'), { env: { ...process.env, H: here.folder!, PATH: pathOf(here.folder!) } })
  const folder = t.testdir()
  const nodes = Array.from({ length: SIZE.nodes }, (_, i) => nodeOf(`many-${i}`, '8'))
  await apply(here, folder, ...nodes, nodeOf('scarce', '2'))
  const { kubeconfig } = here
  const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig, namespace: NAMESPACE } })
  const budgets = (): { startS: number, pullS: number, stopS: number } => ({ startS: 60, pullS: 60, stopS: 1 })
  const runtime = await openKubernetes({
    settings: () => settings, budgets, clock: realClock, log: recordingLogger(), env: process.env
  }, signal)
  t.teardown(() => runtime.close())
  let ends = 0
  runtime.onExit(HOME, () => { ends++ })
  /** Microseconds of the processor for each event, of which every engine has three: two changes, and its end. */
  const eventUs = async (pods: number): Promise<number> => {
    ends = 0
    const { ms, cpuMs, heapMib } = await costOf(async () => {
      await here.kubectl('-n', NAMESPACE, 'annotate', 'pods', '-l', ENGINES, 'ring=changed', '--overwrite')
      await here.kubectl('-n', NAMESPACE, 'delete', 'pods', '-l', ENGINES, '--wait=false', '--grace-period=0', '--force')
      await eventually('each end is told', () => ends === pods)
    })
    const us = Math.round(cpuMs * 1000 / (3 * pods))
    t.comment(`${pods} changes and ${pods} ends: ${ms} ms, ${us} us of the processor for each event, ${heapMib} MiB of heap`)
    return us
  }
  await each(SIZE.few, i => started(runtime, `few-${i}`, 'many'))
  const amongFewUs = await eventUs(SIZE.few)

  const began = performance.now()
  const ids = await each(SIZE.slots, i => started(runtime, `slot-${i}`, 'many'))
  t.comment(`${ids.length} slots started in ${seconds(began)}`)
  // as replicas would be: further engines of this home, which the watch tells of too
  await each(SIZE.pods - SIZE.slots, i => started(runtime, `more-${i}`, 'many'))
  const listing = await costOf(() => runtime.list({ [LABEL_INSTANCE]: HOME }))
  t.equal(listing.value.length, SIZE.pods)
  t.ok(listing.value.every(({ state }) => state === 'running'))
  t.comment(`a list of ${SIZE.pods} pods: ${listing.ms} ms, ${listing.cpuMs} ms of the processor, ${listing.heapMib} MiB of heap`)
  // bounds are twice what busy machines took
  t.ok(listing.heapMib < 8 + SIZE.pods / 24, 'a list takes less than 50 KiB of heap for each')
  const amongManyUs = await eventUs(SIZE.pods)
  t.ok(amongManyUs < 3 * amongFewUs, `an event of one among ${SIZE.pods / SIZE.few} times as many takes as much of the processor, or less`)
  const residentMib = resident()
  t.comment(`resident ${residentMib} MiB`)
  t.ok(residentMib < 512, 'and the process of the ring stays within 512 MiB')
  t.strictSame(await runtime.list({ [LABEL_INSTANCE]: HOME }), [])
  await takesTurns(t, runtime)
}

/** Two GPUs and many that wait for one. */
async function takesTurns (t: Test, runtime: ContainerRuntime): Promise<void> {
  const running = [await started(runtime, 'first', 'scarce', '1'), await started(runtime, 'second', 'scarce', '1')]
  const order: number[] = []
  const lines = new Set<number>()
  const waits: Array<Promise<void>> = []
  for (let i = 0; i < SIZE.waiting; i++) {
    const id = await runtime.create(specOf(`waits-${i}`, 'scarce', '1'), signal)
    waits.push(runtime.start(id, signal, line => { if (/Insufficient nvidia\.com\/gpu/.test(line)) lines.add(i) }).then(() => {
      order.push(i)
      running.push(id)
    }))
    await eventually('it is told that it waits', () => lines.has(i))
  }
  const cost = await costOf(async () => {
    for (let done = 0; done < SIZE.waiting; done++) {
      await runtime.remove(running.shift()!)
      await eventually('the next one has it', () => order.length > done)
    }
    await Promise.all(waits)
  })
  for (const id of running) await runtime.remove(id)
  t.comment(`${SIZE.waiting} that waited: ${cost.ms} ms, ${cost.cpuMs} ms of the processor`)
  t.strictSame(order, Array.from({ length: SIZE.waiting }, (_, i) => i), 'in order')
}

function nodeOf (name: string, gpus: string): object {
  const capacity = { 'cpu': '64', 'memory': '512Gi', 'pods': '110', 'nvidia.com/gpu': gpus }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { 'kubernetes.io/hostname': name, 'ring': name.replace(/-.*/, '') }
    },
    spec: { taints: [{ key: 'kwok.x-k8s.io/node', value: 'fake', effect: 'NoSchedule' }] },
    status: { allocatable: capacity, capacity }
  }
}

function specOf (slot: string, ring: string, gpus: string): ReturnType<typeof tinyContainer> {
  const labels = { [LABEL_INSTANCE]: HOME, [LABEL_SLOT]: slot }
  const options = {
    node_selector: { ring },
    tolerations: [{ key: 'kwok.x-k8s.io/node', operator: 'Exists', value: '', effect: '' }],
    resources: { limits: { 'nvidia.com/gpu': gpus } }
  }
  return { ...tinyContainer('engine:1', { name: `svc-${slot}`, port: 8081, env: {}, labels }), options }
}

async function started (runtime: ContainerRuntime, slot: string, ring: string, gpus = '0'): Promise<string> {
  const id = await runtime.create(specOf(slot, ring, gpus), signal)
  await runtime.start(id, signal)
  return id
}

async function each<T> (count: number, work: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let i = next++; i < count; i = next++) results[i] = await work(i)
  }))
  return results
}

interface Cost<T> { readonly value: T, readonly ms: number, readonly cpuMs: number, readonly heapMib: number }

async function costOf<T> (work: () => Promise<T>): Promise<Cost<T>> {
  const [began, cpu, heap] = [performance.now(), process.cpuUsage(), process.memoryUsage().heapUsed]
  const value = await work()
  const { user, system } = process.cpuUsage(cpu)
  return {
    value,
    ms: Math.round(performance.now() - began),
    cpuMs: Math.round((user + system) / 1000),
    heapMib: Math.round((process.memoryUsage().heapUsed - heap) / 2 ** 20)
  }
}

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`
const resident = (): number => Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024)
