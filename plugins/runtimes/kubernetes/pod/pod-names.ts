import { createHash, randomBytes } from 'node:crypto'
import type { EngineSpec } from 'svc-gateway/plugin'

/** On every pod: that it is the gateway's, and of which home. */
export const MANAGED_LABEL = 'app.kubernetes.io/managed-by'
export const MANAGED_BY = 'svc-gateway'
export const INSTANCE_LABEL = 'svc.local/instance'
/** The pod's own name: what a Service finds it by. */
export const ENGINE_LABEL = 'svc.local/engine'
/** What of the launch the pod itself does not show, as JSON. */
export const LAUNCH_ANNOTATION = 'svc.local/launch'
export const START_GATE = 'svc.local/start'
export const CONTAINER = 'engine'

const ID = /^svc-[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?-[0-9a-f]{12}$/

/** What is kept of a launch on its pod. */
export interface KeptLaunch {
  readonly id: string
  readonly name: string
  readonly labels: EngineSpec['labels']
  readonly port: number | null
  readonly ports?: EngineSpec['ports']
}

/** An id for a pod of this slot. It is the name of the pod. */
export function newPodId (slot: string): string {
  const readable = slot.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 40).replace(/-+$/, '')
  return `svc-${readable === '' ? 'engine' : readable}-${randomBytes(6).toString('hex')}`
}

export function isPodId (id: string): boolean {
  return ID.test(id)
}

/** A home as the value of a label, which may hold less than an id does. */
export function instanceValue (instance: string): string {
  return createHash('sha256').update(instance).digest('hex').slice(0, 32)
}
