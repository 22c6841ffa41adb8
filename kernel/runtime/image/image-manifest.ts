import { svcError, type Device, type Manifest } from '../../contract/index.js'
import { parseImageRef } from './image-ref.js'

/** An image to run: `ref` without digest, the pin, and what the operator should know. */
export interface ResolvedImage {
  readonly ref: string
  readonly digest: string | null
  readonly warning: string | null
  /** Devices that it is built for; unset is any. */
  readonly devices?: readonly Device[]
}

/**
 * The image behind a profile's or slot's `image`: a short name of the manifest or a full reference. Pure.
 * A word without `/`, `:` or `@` is a short name and nothing else, so that a typing error never pulls whatever has
 * that name on a public registry. Throws `slot.config_error` for a short name that nothing defines.
 */
export function resolveImage (
  image: string, manifest: Manifest, env: Readonly<Record<string, string | undefined>>
): ResolvedImage {
  if (/[/:@]/.test(image)) return fromReference(image)
  const variable = overrideVariable(image)
  const override = env[variable]
  if (override !== undefined && override !== '') return fromReference(override)
  const entry = Object.hasOwn(manifest.toolbox_images, image) ? manifest.toolbox_images[image] : undefined
  if (entry === undefined) throw unknownShortName(image, variable, manifest)
  const resolved = fromReference(entry.tag)
  const digest = entry.digest === null || entry.digest === '' ? resolved.digest : entry.digest
  const warning = digest !== null ? null
    : `image ${image} (${entry.tag}) has no digest in this release's manifest and is pulled by its tag: what you get may change`
  return { ref: resolved.ref, digest, warning, ...entry.devices === undefined ? {} : { devices: entry.devices } }
}

/** Throws `slot.config_error` for a device that the image is not built for. */
export function assertBuiltFor (image: string, { ref, devices }: ResolvedImage, device: Device): void {
  if (devices === undefined || devices.includes(device)) return
  throw svcError('slot.config_error',
    `image ${image} (${ref}) is built for ${devices.join(', ')} and not for ${device}: name one that is in the slot's \`image\` or in ${overrideVariable(image)}`,
    { details: { image, device, devices } })
}

/** `my-engine` -> `SVC_TOOLBOX_IMAGE_MY_ENGINE`. */
export function overrideVariable (shortName: string): string {
  return `SVC_TOOLBOX_IMAGE_${shortName.toUpperCase().replaceAll('-', '_')}`
}

function fromReference (reference: string): ResolvedImage {
  const { repository, tag, digest } = parseImageRef(reference)
  return { ref: tag === null ? repository : `${repository}:${tag}`, digest, warning: null }
}

function unknownShortName (image: string, variable: string, manifest: Manifest): Error {
  const known = Object.keys(manifest.toolbox_images).sort()
  return svcError('slot.config_error',
    `unknown image '${image}' (known: ${known.join(', ') || 'none'}); add it to toolbox_images in manifest.json, set ${variable}, or write a full reference such as docker.io/library/${image}:latest`,
    { details: { image, known } })
}
