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
  const own = settings.namespace === '' ? 'svc' : settings.namespace
  cli.out.lines(clusterManifest(settings, namespace ?? own).trimEnd().split('\n'))
}

/** Asks the cluster of a home; null where neither svc.toml nor a slot names one. */
export async function clusterFacts (cli: Cli, parts: ConfigParts): Promise<ClusterSurvey | null> {
  const settings = settingsIn(parts)
  const slots = [...parts.slots.values()].flatMap(({ value }) => value?.runtime === 'kubernetes' ? [value] : [])
  if (!isConfigured(settings) && slots.length === 0) return null
  const { surveyCluster } = await import('../../../plugins/runtimes/kubernetes/survey/survey.js')
  const devices = slots.flatMap(({ device }) => device ?? [])
  return await surveyCluster({ settings, devices, env: cli.env, clock: createSystemClock() })
}
