import type { LogSource } from '../live/source.ts';
import type { PadAddress } from './keys.ts';
import type { PadChange, PadPosition } from './pad.ts';
import type { Plane } from './plane.ts';

/**
 * A followed pad's key: one log for each epoch, and within it for each stretch without a fail-over. A log that goes on
 * under another key is gone under this one: whoever follows it then looks (`read` with `wants.position`) whether its
 * position holds, and follows the present one, or tells of the reset.
 */
export type PadLogKey = (pad: PadAddress, position: PadPosition) => string;

/** The changes of pads as logs that `live/` can follow. Of a pad without state it has no item until there is one. */
export type PadSource = (plane: Plane) => LogSource<PadChange>;
