import type { ClusterSettings } from '../settings.js'

/** A right in the namespace. */
export interface Right {
  readonly resource: string
  readonly subresource?: string
  readonly verbs: readonly string[]
  /** What it is for, in a few words. */
  readonly use: string
}

/** What the driver needs, and nothing else. Pure. */
export function neededRights ({ reach }: Pick<ClusterSettings, 'reach'>): readonly Right[] {
  return [
    { resource: 'pods', verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'], use: 'engines' },
    { resource: 'pods', subresource: 'log', verbs: ['get'], use: 'logs of engines' },
    { resource: 'events', verbs: ['list'], use: 'why an engine does not start' },
    { resource: 'persistentvolumeclaims', verbs: ['get'], use: 'the check of model_claim' },
    ...reach === 'forward' ? [{ resource: 'pods', subresource: 'portforward', verbs: ['get', 'create'], use: 'forwarded engines' }] : [],
    ...reach === 'node-port' ? [{ resource: 'services', verbs: ['get', 'create'], use: 'node ports of engines' }] : []
  ]
}

export function rightName ({ resource, subresource }: Right): string {
  return subresource === undefined ? resource : `${resource}/${subresource}`
}
