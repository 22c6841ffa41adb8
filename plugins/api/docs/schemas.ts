import { z } from 'zod'

export const documentSchema = z.looseObject({
  openapi: z.string(),
  info: z.looseObject({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), z.unknown()))
}).meta({ description: 'An OpenAPI 3.1 document' })
