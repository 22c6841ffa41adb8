import { hasBrand, SERVICE_REF_BRAND } from '../brand.js'

/**
 * A typed name of a service. Refs are the only way from one plugin to another and to the kernel:
 * a plugin lists what it needs in `requires` and gets the instances as `ctx.services`.
 */
export interface ServiceRef<T> {
  readonly id: string
  /** Phantom: carries the type, holds nothing. */
  readonly T?: T
}

export type ServiceOf<R> = R extends ServiceRef<infer T> ? T : never
export type Requires = Readonly<Record<string, ServiceRef<unknown>>>
export type ServicesOf<R extends Requires> = { readonly [K in keyof R]: ServiceOf<R[K]> }

const ID = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$/

/** @param id dotted, `<owner>.<service>`: `core.slots`, `memory.engine`. */
export function createServiceRef<T> (id: string): ServiceRef<T> {
  if (!ID.test(id)) throw new TypeError(`service ref id '${id}' is not of the form owner.service`)
  return Object.freeze({ id, [SERVICE_REF_BRAND]: true }) as ServiceRef<T>
}

export function isServiceRef (value: unknown): value is ServiceRef<unknown> {
  return hasBrand(value, SERVICE_REF_BRAND)
}
