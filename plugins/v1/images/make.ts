import { svcError, type AdaptedAnswer } from 'svc-gateway/plugin'
import { generate, type GenerateServices } from './generate.js'
import { imageRequest } from './image-request.js'
import { assertUsable } from './model-check.js'
import type { ClientRequest, ImageWish } from './ref.js'
import { imageAnswerSchema } from './schemas.js'

/** Makes images for another plugin (ref.ts). */
export async function make (
  services: GenerateServices, { model, prompt, n, size }: ImageWish, client: ClientRequest, signal: AbortSignal
): Promise<readonly string[]> {
  const body = { model, prompt, n, size }
  // an upstream gets no form: its models that answer in base64 alone refuse one
  const request = { ...imageRequest(body), format: 'url' } as const
  assertUsable(services.providers, request.model)
  const answer = await generate(services, request, Buffer.from(JSON.stringify(body)), client, signal)
  const text = (await whole(answer)).toString('utf8')
  if (answer.status !== 200) throw svcError('dispatch.upstream_failed', `the image engine answered ${answer.status}: ${text.slice(0, 500)}`)
  return imageAnswerSchema.parse(JSON.parse(text)).data.flatMap(({ url }) => url ?? [])
}

async function whole ({ body }: AdaptedAnswer): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}
