import { malformed, stringIn } from '../../../v1/over-chat/ref.js'

/** How the base64 of each kind of picture begins. */
const kinds: ReadonlyArray<readonly [beginning: string, type: string]> = [
  ['/9j/', 'image/jpeg'], ['iVBORw0KGgo', 'image/png'], ['R0lGOD', 'image/gif'], ['UklGR', 'image/webp'], ['Qk', 'image/bmp']
]

/** `images` of a message as parts of a chat message. Throws `validation.invalid`. Pure. */
export function pictureParts (images: unknown, at: string): object[] {
  if (images === undefined || images === null) return []
  if (!Array.isArray(images)) throw malformed(at, 'must be a list of pictures in base64')
  return images.map((image: unknown, i) => {
    const data = stringIn(image, `${at}.${i}`)
    if (data.startsWith('data:image/')) return { type: 'image_url', image_url: { url: data } }
    const kind = kinds.find(([beginning]) => data.startsWith(beginning))
    if (kind === undefined) throw malformed(`${at}.${i}`, 'must be a JPEG, PNG, GIF, WebP or BMP in base64')
    return { type: 'image_url', image_url: { url: `data:${kind[1]};base64,${data}` } }
  })
}
