"""TensorFlow 1.x: graphs and sessions."""
