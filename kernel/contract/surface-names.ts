/** The dispatch targets; each `/v1` route aims at one of them. */
export const surfaceNames = [
  'chat', 'completions', 'embeddings', 'rerank', 'transcription', 'translation', 'speech', 'image', 'image-edit', 'image-variation',
  'responses', 'input-tokens', 'compact', 'messages', 'count-tokens', 'fim', 'infill', 'tokenize', 'detokenize', 'score', 'moderation'
] as const
export type SurfaceName = typeof surfaceNames[number]
