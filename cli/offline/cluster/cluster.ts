import { join } from 'node:path'
import { settingsOf, type Paths, type SvcConfig } from '../../../kernel/contract/index.js'
import { loadParts } from '../../../kernel/config/load/load-parts.js'
import type { ConfigParts } from '../../../kernel/config/parts/config-parts.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { clusterSettings, isConfigured, type ClusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import type { ClusterSurvey } from '../../../plugins/runtimes/kubernetes/survey/survey.js'
import type { Cli } from '../../cli.js'
import { svcSchema } from '../svc-schema.js'

/** What the configuration says of a cluster; defaults where it says nothing, or cannot be read. */
function settingsIn (parts: ConfigParts): ClusterSettings {
  return settingsOf((parts.svc.value ?? svcSchema.parse({})) as SvcConfig, clusterSettings).kubernetes
}

/** The manifest that grants what the driver needs, for `kubectl apply`. */
export async function printManifest (cli: Cli, paths: Paths, { namespace }: { readonly namespace?: string }): Promise<void> {
  const settings = settingsIn(await loadParts({ paths, schema: svcSchema }, null))
  const { clusterManifest } = await import('../../../plugins/runtimes/kubernetes/survey/manifest.js')
  cli.out.lines(clusterManifest(settings, namespace ?? await ownNamespace(settings, cli.env)).trimEnd().split('\n'))
}

/** In a pod that of the pod, where nothing else is said. */
async function ownNamespace (settings: ClusterSettings, env: NodeJS.ProcessEnv): Promise<string> {
  if (settings.namespace !== '') return settings.namespace
  if ((env.KUBERNETES_SERVICE_HOST ?? '') === '') return 'svc'
  const { clusterAccess } = await import('../../../plugins/runtimes/kubernetes/api/kubeconfig.js')
  return await clusterAccess(settings, env).then(access => access.namespace, () => 'svc')
}

/** Asks the cluster of a home; null where neither svc.toml nor a slot names one. */
export async function clusterFacts (cli: Cli, parts: ConfigParts, paths: Paths): Promise<ClusterSurvey | null> {
  const settings = settingsIn(parts)
  const slots = [...parts.slots].flatMap(([name, { value }]) => value?.runtime === 'kubernetes'
    ? [{ name, device: value.device ?? null, options: value.runtime_options }] : [])
  const { readPlaces, placeLine } = await import('../../../plugins/runtimes/kubernetes/former/pod-places.js')
  const places = await readPlaces(join(paths.state, 'plugin-state', 'kubernetes'))
  if (!isConfigured(settings) && slots.length === 0) {
    return places.length === 0 ? null
      : { place: 'no cluster is configured any more', namespace: '', version: null, problems: [], doubts: places.map(placeLine), gpus: null }
  }
  const { surveyCluster } = await import('../../../plugins/runtimes/kubernetes/survey/survey.js')
  return await surveyCluster({ settings, slots, places, env: cli.env, clock: createSystemClock() })
}
