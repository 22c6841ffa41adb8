import { isSvcError } from '../../contract/index.js'
import { assertBuiltFor, type ResolvedImage } from '../../runtime/image/image-manifest.js'
import type { EffectiveSlot } from './effective-slot.js'

/**
 * The image of a slot: its own, else its profile's, else its engine's; null for none. Throws `slot.config_error` for a name
 * that nothing defines, and for an image that is not built for the slot's device.
 */
export function slotImage (
  { slot, profile, provider, device, model }: EffectiveSlot, resolve: (name: string) => ResolvedImage
): ResolvedImage | null {
  const own = typeof provider.image === 'function' ? provider.image(slot, device, model) : provider.image
  const wanted = slot.container_image ?? profile?.image ?? own
  if (wanted === undefined) return null
  const image = resolve(wanted)
  assertBuiltFor(wanted, image, device)
  return image
}

/** Why the image of a slot cannot be had, in words; null when it can, and where something else is wrong with the slot. */
export function imageProblem (plans: { readonly image: (name: string) => unknown }, name: string): string | null {
  try {
    plans.image(name)
    return null
  } catch (error) {
    return isSvcError(error) && Object.hasOwn(error.details, 'image') ? error.message : null
  }
}
