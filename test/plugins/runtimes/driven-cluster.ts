import type { Test } from 'tap'
import { LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime, type EngineExit } from '../../../kernel/contract/provider/engine-runtime.js'
import { tinyContainer } from '../../../kernel/testing/index.js'
import { openKubernetes } from '../../../plugins/runtimes/kubernetes/open.js'
import { clusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import { realClock, recordingLogger, type RecordingLogger } from '../../kernel/runtime/support.js'
import { fakeCluster, type FakeCluster } from './fake-cluster.js'

export const quiet: AbortSignal = new AbortController().signal
export const HOME = 'this home'

export interface Driven { readonly runtime: ContainerRuntime, readonly log: RecordingLogger, readonly exits: EngineExit[] }

export async function clusterOf (t: Test, user?: object, folder = t.testdir()): Promise<FakeCluster> {
  const cluster = await fakeCluster(folder, user)
  t.teardown(() => cluster.close())
  return cluster
}

/** A driver over the cluster, as the home has it. */
export async function drive (
  t: Test, { kubeconfig }: Pick<FakeCluster, 'kubeconfig'>, said: object = {}, home = HOME, clock: typeof realClock = realClock,
  folder?: string
): Promise<Driven> {
  const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig, ...said } })
  const log = recordingLogger()
  const budgets = (): { startS: number, pullS: number, stopS: number } => ({ startS: 60, pullS: 60, stopS: 1 })
  const own = folder === undefined ? {} : { home: { folder, instance: home } }
  const runtime = await openKubernetes({ settings: () => settings, budgets, clock, log, env: process.env, ...own }, quiet)
  t.teardown(() => runtime.close())
  const exits: EngineExit[] = []
  runtime.onExit(home, exit => exits.push(exit))
  return { runtime, log, exits }
}

export const specOf = (slot: string, home = HOME): ReturnType<typeof tinyContainer> =>
  tinyContainer('engine:1', { name: `svc-${slot}`, port: 8081, env: {}, labels: { [LABEL_INSTANCE]: home, [LABEL_SLOT]: slot } })

export async function started ({ runtime }: Driven, slot: string, home = HOME): Promise<string> {
  const id = await runtime.create(specOf(slot, home), quiet)
  await runtime.start(id, quiet)
  return id
}
