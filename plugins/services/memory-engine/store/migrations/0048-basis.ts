import type { MemoryMigration } from './migrate.js'

const withoutTexts = (table: string, column: string, at: string): string => `
  UPDATE ${table} SET ${column} = json_set(${column}, '${at}', json((
    SELECT json_group_object(kind.key, json(CASE WHEN kind.type <> 'array' THEN '[]' WHEN kind.key = 'directives' THEN kind.value ELSE (
      SELECT json_group_array(json_object('id', json_extract(one.value, '$.id'))) FROM json_each(kind.value) one
      WHERE CASE one.type WHEN 'object' THEN json_type(one.value, '$.id') END = 'text') END))
    FROM json_each(${column}, '${at}') kind)))
  WHERE CASE WHEN json_valid(${column}) THEN json_type(${column}, '${at}') END = 'object'`

/** What a mental model was made of is kept by its ids: the text of a memory is where the memory is, and goes with it. */
export const basis: MemoryMigration = {
  version: 48,
  name: 'basis of mental models',
  sql: [
    withoutTexts('mental_models', 'reflect_response', '$.based_on'),
    withoutTexts('mental_model_history', 'change', '$.previous_reflect_response.based_on')
  ].join(';')
}
