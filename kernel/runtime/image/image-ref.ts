/** `registry.example:5000/owner/name:tag@sha256:…` taken apart. */
export interface ImageRef {
  /** Registry, if any, and name. */
  readonly repository: string
  readonly tag: string | null
  readonly digest: string | null
}

const DIGEST = /^sha256:[0-9a-f]{64}$/

/** Pure and lenient: what is no reference comes back as a repository and fails where it is used. */
export function parseImageRef (reference: string): ImageRef {
  if (DIGEST.test(reference)) return { repository: reference, tag: null, digest: null } // the id of a local image
  const [name, digest] = splitAt(reference, reference.indexOf('@'))
  // a colon before the last slash belongs to the registry's port
  const colon = name.lastIndexOf(':')
  const [repository, tag] = splitAt(name, colon > name.lastIndexOf('/') ? colon : -1)
  return { repository, tag, digest }
}

/** What an image is looked up and started by: `repository@digest` when it is pinned, else `repository:tag`. */
export function usableReference (image: string, digest: string | null): string {
  const ref = parseImageRef(image)
  const pin = digest ?? ref.digest
  if (pin !== null) return `${ref.repository}@${pin}`
  return ref.tag === null && !DIGEST.test(image) ? `${ref.repository}:latest` : image
}

export function pinOf (image: string, digest: string | null): string | null {
  return digest ?? parseImageRef(image).digest
}

function splitAt (text: string, at: number): [string, string | null] {
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)]
}
