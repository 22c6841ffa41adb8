import { asValue, createContainer, InjectionMode, type AwilixContainer } from 'awilix'
import { svcError, type Requires, type ServiceRef } from '../../contract/index.js'

type Cradle = Record<string, unknown>

/**
 * The registrations behind service refs: one awilix container in strict mode, ours alone. A name is taken once;
 * the library would let a later registration silently replace an earlier one.
 */
export class Services {
  #container = emptyContainer()

  get ids (): ReadonlySet<string> { return new Set(Object.keys(this.#container.registrations)) }

  add (ref: Pick<ServiceRef<unknown>, 'id'>, implementation: unknown): void {
    if (this.#container.hasRegistration(ref.id)) throw svcError('plugin.conflict', `service '${ref.id}' is already provided`)
    this.#container.register(ref.id, asValue(implementation))
  }

  /** Exactly the services a plugin requires, under its own names. */
  of (requires: Requires): Record<string, unknown> {
    return Object.freeze(Object.fromEntries(Object.entries(requires).map(([key, ref]) => [key, this.#container.resolve(ref.id)])))
  }

  /** A container that holds a plugin's required services and nothing else, for its own Fastify scope. */
  containerOf (requires: Requires): AwilixContainer<Cradle> {
    const own = emptyContainer()
    for (const [key, service] of Object.entries(this.of(requires))) own.register(key, asValue(service))
    return own
  }

  /** The same services without some of them; changes to one do not show in the other. */
  without (ids: Iterable<string>): Services {
    const left = new Services()
    left.#container.register(this.#container.registrations)
    for (const id of ids) left.remove(id)
    return left
  }

  /** Becomes what `other` is. */
  adopt (other: Services): void {
    this.#container = other.#container
  }

  /** The library takes nothing back: what remains moves to a new container. */
  remove (id: string): void {
    if (!this.#container.hasRegistration(id)) return
    const { [id]: _, ...rest } = this.#container.registrations
    this.#container = emptyContainer()
    this.#container.register(rest)
  }
}

function emptyContainer (): AwilixContainer<Cradle> {
  return createContainer<Cradle>({ injectionMode: InjectionMode.PROXY, strict: true })
}
