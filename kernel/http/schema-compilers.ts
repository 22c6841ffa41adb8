import { createRequire } from 'node:module'
import type { FastifyServerOptions } from 'fastify'

const load = createRequire(createRequire(import.meta.url).resolve('fastify'))

const lazily = (name: string) => (...args: unknown[]): never => (load(name) as () => (...args: unknown[]) => never)()(...args)

/**
 * Fastify's own compilers of JSON schemas, loaded with the first schema: the gateway's routes have none that Fastify
 * sees, and the 250 files of the compilers are a seventh of what a start would load. Scopes of plugins may have some.
 */
export const schemaController: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: {
    buildValidator: lazily('@fastify/ajv-compiler'),
    buildSerializer: lazily('@fastify/fast-json-stringify-compiler')
  }
}
