"""TensorFlow 2.x: variables on the device and traced functions."""
