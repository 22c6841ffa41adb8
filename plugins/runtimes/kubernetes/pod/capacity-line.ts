import type { Pod } from '../api/objects.js'

interface Waiting { readonly told: (line: string) => void, readonly go: () => void, said: string }

/** A place in the line of those that ask for the same. */
export interface CapacityPlace {
  /** Resolves once it is the first. */
  readonly turn: Promise<void>
  /** What the first waits for: those behind it wait for the same. */
  says (line: string): void
  /** It has a node, or gave up. Idempotent. */
  leave (): void
}

/**
 * Pods that ask for the same are given to the scheduler one at a time, in the order of their starts: among those that it found
 * no node for it would take any first, by how often it had tried them. What asks for something else is in another line.
 */
export class CapacityLine {
  readonly #lines = new Map<string, Set<Waiting>>()

  /** @param told what the first waits for, each time it is something else */
  join (ask: string, told: (line: string) => void): CapacityPlace {
    const line = this.#lines.get(ask) ?? new Set<Waiting>()
    this.#lines.set(ask, line)
    let go = (): void => {}
    const turn = new Promise<void>(resolve => { go = resolve })
    const own: Waiting = { told, go, said: '' }
    const first = firstOf(line)
    line.add(own)
    if (first === null) go()
    else if (first.said !== '') tell(own, first.said)
    return {
      turn,
      says: text => {
        if (firstOf(line) === own) for (const each of line) tell(each, text)
      },
      leave: () => {
        if (!line.delete(own)) return
        firstOf(line)?.go()
        if (line.size === 0 && this.#lines.get(ask) === line) this.#lines.delete(ask)
      }
    }
  }
}

/** What decides where a pod can be: pods with the same answer are alike to the scheduler. Pure. */
export function askOf ({ spec }: Pod): string {
  const { nodeSelector, tolerations, runtimeClassName, hostNetwork, containers, volumes = [] } = spec
  const claims = volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [])
  const wants = containers.map(({ resources }) => resources)
  return JSON.stringify([nodeSelector, tolerations, runtimeClassName, hostNetwork, wants, claims])
}

function firstOf (line: ReadonlySet<Waiting>): Waiting | null {
  return line.values().next().value ?? null
}

function tell (each: Waiting, text: string): void {
  if (each.said === text) return
  each.said = text
  each.told(text)
}
