import type { Member } from './fleet-member.js'
import type { SlotStateFiles } from './kept/slot-state-file.js'
import type { Engine } from '../schedule/scheduled-slot.js'
import type { SlotOwner } from './slot-owner.js'

/** Slots that were taken out of the configuration, each until its engine is gone, or has failed to go. */
export class LeavingSlots {
  readonly #files: Pick<SlotStateFiles, 'remove'>
  readonly #isBack: (name: string) => boolean
  readonly #leaving = new Map<string, { readonly owner: SlotOwner, readonly gone: Promise<void> }>()
  /** Engines that could not be removed: they go before another of that name is started. */
  readonly stranded = new Map<string, Engine>()

  /** @param isBack whether there is a slot of that name again */
  constructor (files: Pick<SlotStateFiles, 'remove'>, isBack: (name: string) => boolean) {
    this.#files = files
    this.#isBack = isBack
  }

  /** Stops its engine and ends its owner; rejects when the engine cannot be removed. */
  take (member: Member, force: boolean): Promise<void> {
    const { name, owner, engine } = member
    const ended = this.#end(member, force)
    // an earlier one of this name may still be on its way out
    const entry = { owner, gone: Promise.allSettled([ended, engine.free]).then(() => {}) }
    this.#leaving.set(name, entry)
    void entry.gone.then(() => { if (this.#leaving.get(name) === entry) this.#leaving.delete(name) })
    return ended
  }

  /** Resolves when the one of that name is gone; null when none is leaving. */
  drop (name: string, force: boolean): Promise<void> | null {
    const leaving = this.#leaving.get(name)
    if (leaving === undefined) return null
    return force ? leaving.owner.unload(true).then(() => leaving.gone) : leaving.gone
  }

  /** Resolves when the one of that name is gone, also when none is leaving. Never rejects. */
  goneOf (name: string): Promise<void> {
    return this.#leaving.get(name)?.gone ?? Promise.resolve()
  }

  /** Resolves when all are gone that have left until now. Never rejects. */
  async gone (): Promise<void> {
    await Promise.all([...this.#leaving.values()].map(({ gone }) => gone))
  }

  async #end (member: Member, force: boolean): Promise<void> {
    const { name, owner, feed } = member
    try {
      await owner.unload(force)
      await owner.close(false)
    } catch (error) {
      await owner.close(true)
      const { engine } = owner.core
      if (engine !== null) this.stranded.set(name, engine)
      throw error
    } finally {
      member.unwatchExit()
      feed.close()
    }
    if (!this.#isBack(name)) await this.#files.remove(name)
  }
}
