import type { GroupConsumer, Kafka, LogReader, Producer, TransactionalProducer } from '../../src/ports.ts'
import type { Mistake } from './world.ts'

export interface Plant {
  readonly mistake: Mistake
  undo(): void
}

/** Puts `replace(original)` in a method's place until `undo`. */
export function over<T extends object, K extends keyof T>(
  target: T,
  name: K,
  replace: (original: T[K]) => T[K],
): Plant {
  const original = target[name]
  target[name] = replace(original)
  return {
    mistake: {},
    undo() {
      target[name] = original
    },
  }
}

export function wrapped(kafka: (kafka: Kafka) => Kafka): Plant {
  return { mistake: { kafka }, undo() {} }
}

export function transactions(
  replace: (producer: TransactionalProducer, kafka: Kafka) => TransactionalProducer['transact'],
): Plant {
  return wrapped((kafka) => ({
    ...kafka,
    transactional: (id) => {
      const producer = kafka.transactional(id)
      return forward(producer, { transact: replace(producer, kafka) })
    },
  }))
}

export function readers(replace: (reader: LogReader) => Partial<LogReader>): Plant {
  return wrapped((kafka) => ({
    ...kafka,
    reader: () => {
      const reader = kafka.reader()
      return forward(reader, replace(reader))
    },
  }))
}

/** The same object but for some of its methods; private fields stay with their owner. */
export function forward<T extends GroupConsumer | Producer | LogReader | TransactionalProducer>(
  to: T,
  changed: Partial<T>,
): T {
  return new Proxy(to, {
    get(target, name) {
      const own = changed[name as keyof T]
      if (own !== undefined) return own
      const value = target[name as keyof T]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
