import { z } from 'zod'
import type { OfferTool, OmniTool, ToolContext } from './tool.js'
import { analyzeImage } from './tools/analyze-image.js'
import { embedText } from './tools/embed-text.js'
import { generateImage } from './tools/generate-image.js'
import { rerankDocuments } from './tools/rerank-documents.js'
import { routeToChat } from './tools/route-to-chat.js'
import { textToSpeech } from './tools/text-to-speech.js'
import { transcribeAudio } from './tools/transcribe-audio.js'

const offers: readonly OfferTool[] = [
  generateImage, textToSpeech, transcribeAudio, analyzeImage, embedText, rerankDocuments, routeToChat
]

export type Toolbox = ReadonlyMap<string, OmniTool>

/**
 * The tools that the slots of this moment can serve, and those of tool servers. A name that the client has a tool for is left to
 * the client.
 */
export function toolboxOf (
  context: ToolContext, clientTools: readonly unknown[], more: (taken: ReadonlySet<string>) => readonly OmniTool[] = () => []
): Toolbox {
  const taken = new Set(clientTools.map(toolName))
  const tools = offers.map(offer => offer(context)).filter(tool => tool !== null).filter(({ name }) => !taken.has(name))
  const names = new Set([...taken, ...tools.map(({ name }) => name)].filter(name => typeof name === 'string'))
  return new Map([...tools, ...more(names)].map(tool => [tool.name, tool]))
}

/** The tools as a chat request declares them. */
export function declared (toolbox: Toolbox): object[] {
  return [...toolbox.values()].map(({ name, description, parameters, inputSchema }) => {
    const { $schema: _schema, ...schema } = inputSchema as { $schema?: unknown } | undefined ?? z.toJSONSchema(parameters)
    return { type: 'function', function: { name, description, parameters: schema } }
  })
}

function toolName (tool: unknown): unknown {
  return (tool as { readonly function?: { readonly name?: unknown } | null } | null)?.function?.name
}
