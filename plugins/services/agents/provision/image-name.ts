const DIGEST = /@(?<digest>[a-z0-9]+:[0-9a-f]+)$/i
/** Behind the last slash: a colon before it belongs to the registry's port. */
const TAG = /:(?<tag>[\w.-]+)$/

/** The tag of an image, or its digest where it is named by one. Pure. */
export function imageVersion (image: string): string {
  const digest = DIGEST.exec(image)?.groups?.digest
  return digest ?? TAG.exec(image.slice(image.lastIndexOf('/') + 1))?.groups?.tag ?? 'latest'
}

/** The image in another version; null, or the one that it has, for the image as it is. Pure. */
export function withVersion (image: string, version: string | null): string {
  if (version === null || version === imageVersion(image)) return image
  const name = image.replace(DIGEST, '')
  const at = name.lastIndexOf('/') + 1
  return `${name.slice(0, at)}${name.slice(at).replace(TAG, '')}:${version}`
}
