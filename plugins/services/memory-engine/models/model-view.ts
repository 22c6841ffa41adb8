import { wireTime } from '../wire/times.js'
import type { Directive } from './directive-table.js'

export function directiveView (bankId: string, directive: Directive): Record<string, unknown> {
  return {
    id: directive.id,
    bank_id: bankId,
    name: directive.name,
    content: directive.content,
    priority: directive.priority,
    is_active: directive.isActive,
    tags: directive.tags,
    created_at: wireTime(directive.createdAt),
    updated_at: wireTime(directive.updatedAt)
  }
}
