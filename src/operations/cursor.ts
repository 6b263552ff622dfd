import { HooktideError } from '../core/error.ts'

/** Where to go on: everything before it, partition by partition, was looked at. */
export interface Cursor {
  readonly partition: number
  readonly offset: number
}

/** `partition/offset`. */
export function cursorText({ partition, offset }: Cursor): string {
  return `${partition}/${offset}`
}

export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,9})\/(\d{1,15})$/.exec(text)
  if (match !== null) return { partition: Number(match[1]), offset: Number(match[2]) }
  throw new HooktideError('usage', `"${text.slice(0, 40)}" is no cursor`, {
    remedy: 'Give the one that the last call printed: partition/offset.',
  })
}
