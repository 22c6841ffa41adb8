import { z } from 'zod'
import { problemText } from '../../kernel/contract/text/problem-text.js'
import { ApiFailure } from '../client/api-failure.js'
import type { ApiClient } from '../client/client.js'

/** What is wrong in the configuration, as routes tell it. */
export const diagnosticsSchema = z.array(z.looseObject({ file: z.string(), path: z.string().default(''), message: z.string() })).default([])

const statusSchema = z.looseObject({ diagnostics: diagnosticsSchema })

/** What a gateway does not take of one of its files, a sentence each; none where it does not report its state. */
export async function fileProblems (client: ApiClient, file: string): Promise<string[]> {
  try {
    const { diagnostics } = await client.call({ path: '/api/status' }, statusSchema)
    return diagnostics.filter(each => each.file === file).map(({ path, message }) => `${file}: ${problemText(path, message)}`)
  } catch (error) {
    if (error instanceof ApiFailure) return []
    throw error
  }
}
